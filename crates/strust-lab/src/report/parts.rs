//! Small parts of the page.

use crate::{
    data::parameters::Parameters,
    figure::{Figure, Theme, key},
    format::plain,
};
use maud::{Markup, PreEscaped, html};

/// A heading of a level from 1 to 6.
pub(super) fn heading(level: usize, content: &Markup) -> Markup {
    html! {
        @match level {
            1 => { h1 { (content) } }
            2 => { h2 { (content) } }
            3 => { h3 { (content) } }
            4 => { h4 { (content) } }
            5 => { h5 { (content) } }
            _ => { h6 { (content) } }
        }
    }
}

/// A title with the name used in files.
pub(super) fn tag(name: &str) -> Markup {
    html! { code.tag { (name) } }
}

/// Names and values. A line may break between pairs but not inside a pair.
pub(super) fn pairs(parameters: &Parameters) -> Markup {
    html! {
        @if parameters.is_empty() { span.quiet { "none" } }
        @for (i, (name, value)) in parameters.iter().enumerate() {
            @if i > 0 { " " }
            span.pair { span.quiet { (name) } " " code { (plain(value)) } }
        }
    }
}

/// A sample of a method's line, and the method's name.
pub(super) fn keyed(color: usize, name: &str) -> Markup {
    html! { (PreEscaped(key(color))) (name) }
}

/// A table in a box that scrolls on a narrow page, also by keyboard.
pub(super) fn table(class: &str, label: &str, caption: &Markup, head: &Markup, body: &Markup) -> Markup {
    html! {
        div.box role="region" tabindex="0" aria-label=(label) {
            table class=(class) {
                caption { span { (caption) } }
                thead { (head) }
                tbody { (body) }
            }
        }
    }
}

/// The figure itself.
pub(super) fn drawn(figure: &Figure) -> Markup {
    PreEscaped(figure.svg(Theme::Inline))
}

/// A figure under the names of its axes.
pub(super) fn framed(figure: &Figure) -> Markup {
    html! {
        figure {
            figcaption { (figure.y.label) " " span.quiet { "against " (figure.x.label) } }
            (drawn(figure))
        }
    }
}

/// A figure under its title, with a sentence below it.
pub(super) fn titled(figure: &Figure, sentence: &str) -> Markup {
    html! {
        figure {
            figcaption { (figure.title) }
            (drawn(figure))
            p.explain { (sentence) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_escaped() {
        let parameters =
            Parameters::from([("<a>".into(), toml::Value::String("\"&".into())), ("b".into(), 1e-8.into())]);
        let shown = pairs(&parameters).into_string();
        assert!(shown.contains("&lt;a&gt;") && shown.contains("&quot;&amp;") && shown.contains(">1e-8<"), "{shown}");
    }
}
