//! Which format a reader asks for, by its header `Accept`.

use hyper::HeaderMap;
use hyper::header::ACCEPT;

use super::Format;

/// The format that is asked for. A reader that does not name `OpenMetrics` gets Prometheus' text.
pub(crate) fn wanted(headers: &HeaderMap) -> Format {
    let lines = headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
    let (mut open, mut plain) = (0.0_f64, 0.0_f64);
    for range in lines.flat_map(|line| line.split(',')) {
        let mut parts = range.split(';').map(|part| part.trim().to_ascii_lowercase());
        let name = parts.next().unwrap_or_default();
        let params: Vec<String> = parts.collect();
        let param = |name: &str| {
            let values = params.iter().filter_map(|param| param.split_once('='));
            values.into_iter().find(|(known, _)| known.trim() == name).map(|(_, value)| value)
        };
        let weight = param("q").map_or(Some(1.0), |weight| weight.trim().parse().ok());
        let weight = weight.unwrap_or(0.0);
        match name.as_str() {
            "application/openmetrics-text" if param("version").is_none_or(is_known) => {
                open = open.max(weight);
            }
            "text/plain" => plain = plain.max(weight),
            _ => {}
        }
    }
    if open > 0.0 && open >= plain { Format::OpenMetrics } else { Format::Prometheus }
}

fn is_known(version: &str) -> bool {
    version.trim().trim_matches('"') == "1.0.0"
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn wanted_by(lines: &[&'static str]) -> Format {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(ACCEPT, HeaderValue::from_static(line));
        }
        wanted(&headers)
    }

    #[test]
    fn readers_that_prefer_openmetrics_get_it() {
        for line in [
            "application/openmetrics-text",
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            "Application/OpenMetrics-Text;version=\"1.0.0\"",
            // Prometheus 2 and 3.
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
             text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
             application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
        ] {
            assert_eq!(wanted_by(&[line]), Format::OpenMetrics, "{line}");
        }
        let two = ["text/html", "application/openmetrics-text"];
        assert_eq!(wanted_by(&two), Format::OpenMetrics, "in a line of its own");
    }

    #[test]
    fn all_other_readers_get_the_text_of_prometheus() {
        for line in [
            "*/*",
            "text/plain;version=0.0.4",
            "text/html,application/xhtml+xml,*/*;q=0.8",
            "application/openmetrics-text;version=0.0.1",
            "application/openmetrics-text;version=2.0.0",
            "application/openmetrics-text;q=0",
            "application/openmetrics-text;q=x",
            "application/openmetrics-text;q=0.2,text/plain;q=0.5",
            "",
        ] {
            assert_eq!(wanted_by(&[line]), Format::Prometheus, "{line}");
        }
        assert_eq!(wanted_by(&[]), Format::Prometheus);
    }
}
