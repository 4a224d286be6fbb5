/* Linked into the static program alone, by image.sh. Names are then looked up by what the C library
   has built in. An image's nsswitch.conf may name modules besides: they belong to that image's own C
   library, and another one crashes with them. */

#include <features.h>

#ifdef __GLIBC__
#if !__GLIBC_PREREQ(2, 34)
#error "older C libraries than glibc 2.34 have no look-up built in"
#endif

#include <nss.h>

__attribute__((constructor)) static void look_up_without_modules(void) {
  __nss_configure_lookup("hosts", "files dns");
  __nss_configure_lookup("passwd", "files");
}
#endif
