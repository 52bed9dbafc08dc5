/** Makes a page of GUIDE.md for `build.mjs`: contents at its side, one section for each heading. */
import { Marked } from 'marked'
import { diagram } from './guide-diagram.mjs'

const escaped = (text) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')

/** As GitHub names headings, which the links of the document rely on. */
const anchorOf = (heading) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-')

/** Chapters whose list items begin with a name: each item has an anchor of its own. */
const namedItems = { settings: 'setting-', 'denial-codes': 'denial-' }

/** `page`: what is common to the pages that the build makes. */
export function guidePage(markdown, page) {
  const headings = []
  let chapter = ''
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth, text }) {
        const title = this.parser.parseInline(tokens)
        if (depth === 1) return `<h1>${title}</h1>\n<section>\n`
        const id = anchorOf(text)
        chapter = id
        headings.push({ id, title, depth })
        const mark = `<a class="anchor" href="#${id}" aria-label="Link to this section">#</a>`
        return `</section>\n<section class="depth-${depth}">\n<h${depth} id="${id}">${title} ${mark}</h${depth}>\n`
      },
      link({ href, tokens }) {
        const text = this.parser.parseInline(tokens)
        // The other documents of the repository are not served.
        return /^(?:https?:|#)/.test(href) ? `<a href="${escaped(href)}">${text}</a>` : text
      },
      listitem({ text, tokens, loose }) {
        const content = this.parser.parse(tokens, loose)
        const [, name] = /^`(\w+)`/.exec(text) ?? []
        const prefix = namedItems[chapter]
        if (name === undefined || prefix === undefined) return `<li>${content}</li>\n`
        return `<li id="${prefix}${name.toLowerCase()}">${content}</li>\n`
      },
      // Reached by the keyboard, so that arrow keys scroll it.
      code: ({ text, lang }) =>
        lang === 'mermaid'
          ? diagram(text)
          : `<pre tabindex="0"><code>${escaped(text)}</code></pre>\n`,
      table(token) {
        const row = (cells, name) =>
          `<tr>${cells.map((cell) => `<${name}>${this.parser.parseInline(cell.tokens)}</${name}>`).join('')}</tr>`
        const body = token.rows.map((cells) => row(cells, 'td')).join('\n')
        return `<div class="wide" tabindex="0"><table><thead>${row(token.header, 'th')}</thead><tbody>${body}</tbody></table></div>\n`
      },
    },
  })
  const content = marked.parse(markdown, { async: false })
  const contents = headings
    .map(({ id, title, depth }) => `<a class="depth-${depth}" href="#${id}">${title}</a>`)
    .join('\n')
  return page({
    title: 'Guide · Tollgate',
    body: `<a class="skip" href="#main">Skip to content</a>
<div class="page">
<header class="top">
  <button type="button" class="menu-button" popovertarget="menu">Contents</button>
  <a class="brand" href="/console">Tollgate</a>
  <a href="/docs">API reference</a>
  <a href="/console">Console</a>
</header>
<nav id="menu" class="side" popover="auto" aria-label="Contents">
<form role="search"><label>Search <input type="search" maxlength="100" autocomplete="off" /></label>
<small role="status"></small></form>
${contents}
</nav>
<main id="main" class="guide">
${content}</section>
</main>
</div>`,
  })
}
