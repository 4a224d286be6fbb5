/* Linked only into static programs, by the Dockerfile, image.sh and python/dist.sh. It looks names up with
   the functions built into the C library. An image's nsswitch.conf may name modules, but they belong to
   that image's own C library and crash with another one. */

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
