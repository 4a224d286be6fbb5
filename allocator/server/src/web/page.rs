//! The page's files, which are compiled into the program.

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const ICON: &str = "image/svg+xml";

/// Path, type and content.
const FILES: [(&str, &str, &str); 11] = [
    ("/", HTML, include_str!("page/index.html")),
    ("/page.css", CSS, include_str!("page/page.css")),
    ("/card.css", CSS, include_str!("page/card.css")),
    ("/icon.svg", ICON, include_str!("page/icon.svg")),
    ("/page.js", SCRIPT, include_str!("page/page.js")),
    ("/live.js", SCRIPT, include_str!("page/live.js")),
    ("/card.js", SCRIPT, include_str!("page/card.js")),
    ("/chart.js", SCRIPT, include_str!("page/chart.js")),
    ("/cluster.js", SCRIPT, include_str!("page/cluster.js")),
    ("/order.js", SCRIPT, include_str!("page/order.js")),
    ("/text.js", SCRIPT, include_str!("page/text.js")),
];

/// The paths of all files.
pub(super) fn paths() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(path, ..)| *path)
}

/// The type and the content of the file at `path`.
pub(super) fn file(path: &str) -> Option<(&'static str, &'static str)> {
    let found = FILES.iter().find(|(name, ..)| *name == path);
    found.map(|(_, content_type, content)| (*content_type, *content))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every piece of `text` between `before` and `after`.
    fn named<'a>(text: &'a str, before: &'a str, after: char) -> impl Iterator<Item = &'a str> {
        text.split(before).skip(1).filter_map(move |rest| rest.split(after).next())
    }

    #[test]
    fn page_names_only_files_that_are_served() {
        for (name, _, content) in FILES {
            let paths = named(content, "href=\"", '"').chain(named(content, "src=\"", '"'));
            for path in paths.filter(|path| !path.starts_with('#')) {
                let served = ["v1/status", "metrics"].contains(&path);
                assert!(served || file(&format!("/{path}")).is_some(), "{name} names {path}");
            }
            for module in named(content, "from \"./", '"') {
                assert!(file(&format!("/{module}")).is_some(), "{name} imports {module}");
            }
            let outside = content.replace("http://www.w3.org/2000/svg", "");
            assert!(!outside.contains("://"), "{name} names another place");
        }
    }

    #[test]
    fn text_of_jobs_is_never_markup() {
        for (name, _, content) in FILES {
            for way in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
                assert!(!content.contains(way), "{name} uses {way}");
            }
        }
        let (_, page) = file("/").unwrap();
        assert!(!page.contains("<style") && !page.contains(" style="));
        let handler = |word: &str| word.starts_with("on") && word.contains('=');
        assert!(!page.split_whitespace().any(handler), "scripts are files of their own");
    }
}
