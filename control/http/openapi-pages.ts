/** The HTML pages of the API: the front page, and the reference with its sign-in form. */

/**
 * Blocks external resources. Swagger UI needs inline styles, and `data:` images in its style sheet.
 */
export const pagePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** `GET /` while the console has not been built. */
export const frontPage = (version: string): string => `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <link rel="icon" href="data:," />
    <title>Tollgate</title>
    <style>
      body { max-width: 40rem; margin: 3rem auto; padding: 0 1rem; font: 1rem/1.5 system-ui, sans-serif; }
      dt { margin-top: 1rem; font-weight: 600; }
      dd { margin: 0; }
    </style>
  </head>
  <body>
    <main>
      <h1>Tollgate ${version}</h1>
      <p>This is the control API.</p>
      <dl>
        <dt><a href="/docs">API reference</a></dt>
        <dd>Every operation. Sign in with the user and password printed at the first start to try them.</dd>
        <dt><a href="/openapi.json">openapi.json</a></dt>
        <dd>The API as an OpenAPI 3.1 document, for client generators.</dd>
        <dt><a href="/readyz">readyz</a>, <a href="/livez">livez</a>, <a href="/health">health</a></dt>
        <dd>Readiness for calls, liveness of the process, and its version.</dd>
        <dt>/metrics</dt>
        <dd>Prometheus metrics. Requires an application key.</dd>
        <dt>/mcp</dt>
        <dd>Tools for AI agents over the Model Context Protocol. Requires an application key.</dd>
      </dl>
    </main>
  </body>
</html>
`

/**
 * `GET /docs`; `style` and `icon`: addresses of the console's, absent while it has not been built.
 */
export const docsPage = (
  style: string | undefined,
  icon: string | undefined,
): string => `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <link rel="icon" href="${icon ?? 'data:,'}" />
    <title>API reference · Tollgate</title>
    <link rel="stylesheet" href="/docs/swagger-ui.css" />${
      style === undefined ? '' : `\n    <link rel="stylesheet" href="${style}" />`
    }
    <style>
      #sign-in { display: flex; flex-wrap: wrap; gap: 0.75rem 1rem; align-items: end; }
      #sign-in label { display: grid; gap: 0.2rem; }
      #find { display: flex; gap: 1rem; align-items: end; margin-top: 1rem; }
      #find label { display: grid; flex: 0 1 28rem; gap: 0.2rem; }
      #swagger-ui .filter-container { display: none; }
      #sign-in [role=alert] { flex-basis: 100%; margin: 0; }
      .reference { max-width: 1460px; margin: 0 auto; padding: 1.5rem; }
      .reference main { padding: 0; border: 0; }
      [hidden] { display: none !important; }
      #swagger-ui :is(.info .title, .opblock-tag, .opblock-summary-description, button, input, select, h1, h2, h3, h4, h5, p, li, table, label, .markdown, .tab li, .parameter__name, .model, .model-title, .response-col_status, .btn) { font-family: inherit; }
      html.dark-mode, html.dark-mode #swagger-ui .swagger-ui { background: var(--back); }
      #swagger-ui .wrapper { padding: 0; }
      #swagger-ui .info { margin: 1.5rem 0; }
      #swagger-ui :is(.info .title, .info p, .info li, .opblock-tag, .opblock-tag small, .opblock .opblock-summary-description, .opblock-description-wrapper p, table thead tr td, table thead tr th, .parameter__name, .parameter__type, .response-col_status, .responses-inner h4, .responses-inner h5, .opblock-section-header h4, .opblock-section-header label, .model, .model-title, section.models h4, section.models h4 span, .markdown p, .tab li, .scheme-container label) { color: var(--text); }
      #swagger-ui .opblock .opblock-summary-path, #swagger-ui .opblock .opblock-summary-path a { color: var(--text); }
      #swagger-ui .info a { color: var(--accent); }
      #swagger-ui .scheme-container { margin: 0 0 1rem; padding: 1rem; border: 1px solid var(--line); border-radius: 10px; background: var(--front); box-shadow: var(--shadow); }
      #swagger-ui .opblock-tag { border-color: var(--line); }
      #swagger-ui .opblock { border-radius: 8px; box-shadow: none; }
      #swagger-ui .opblock .opblock-section-header { background: var(--front); box-shadow: none; }
      #swagger-ui .btn { border-radius: 7px; box-shadow: none; }
      #swagger-ui .btn.authorize { border-color: var(--accent); color: var(--accent); }
      #swagger-ui .btn.authorize svg { fill: var(--accent); }
      #swagger-ui .btn.execute { border-color: var(--accent); background: var(--accent); color: var(--on-accent); }
      #swagger-ui :is(td, tr:hover > td) { background: none; border: 0; }
      #swagger-ui :is(th, thead tr td) { position: static; background: none; }
      #swagger-ui section.models { border-color: var(--line); border-radius: 10px; }
      .swagger-ui :where(button:not(.btn)) { min-height: 0; padding: 0; border: 0; background: none; box-shadow: none; }
      #swagger-ui .arrow { padding: 0; border: 0; }
      #swagger-ui .info .title { font-size: 1.25rem; }
      #swagger-ui .info .title small pre { max-width: none; padding: 0; background: none; }
    </style>
  </head>
  <body>
    <header class="top">
      <a class="brand" href="/console">Tollgate</a>
      <a href="/guide">Guide</a>
      <a href="/console">Console</a>
    </header>
    <div class="reference">
      <section aria-label="Session">
      <h1>API reference</h1>
      <p id="signed-in" role="status"></p>
      <form id="sign-in" hidden>
        <label>User <input name="username" autocomplete="username" required maxlength="100" /></label>
        <label>Password <input name="password" type="password" autocomplete="current-password" required maxlength="256" /></label>
        <label>Tenant (optional) <input name="tenant" autocomplete="organization" maxlength="64" /></label>
        <button class="primary">Sign in</button>
        <p class="problem" role="alert" hidden></p>
      </form>
      </section>
      <form id="find" role="search">
        <label>Find an operation <input type="search" name="text" autocomplete="off" maxlength="100" placeholder="top up, carriers, DELETE …" /></label>
        <output role="status"></output>
      </form>
      <div id="swagger-ui"></div>
    </div>
    <script src="/docs/swagger-ui-bundle.js"></script>
    <script src="/docs/start.js"></script>
  </body>
</html>
`

/** `GET /docs/start.js`. The session is that of the console: a cookie that the browser attaches. */
export const docsScript = `const stored = localStorage.getItem('tollgate.theme')
const dark = matchMedia('(prefers-color-scheme: dark)')
const colour = () => {
  document.documentElement.dataset.theme = stored ?? ''
  document.documentElement.classList.toggle('dark-mode', stored === 'dark' || (stored !== 'light' && dark.matches))
}
dark.addEventListener('change', colour)
colour()

// An operation is shown when each word is in its method, path, name, summary or tag.
const find = document.getElementById('find')
const opsFilter = (tags, text) => {
  const words = text.toLowerCase().split(/\\s+/).filter(Boolean)
  let count = 0
  const found = tags.map((tag, name) => tag.update('operations', (operations) => operations.filter((each) => {
    const texts = [each.get('method'), each.get('path'), name]
    for (const field of ['operationId', 'summary']) texts.push(each.getIn(['operation', field]) ?? '')
    const whole = texts.join(' ').toLowerCase()
    return words.every((word) => whole.includes(word))
  }))).filter((tag) => tag.get('operations').size > 0)
  found.forEach((tag) => (count += tag.get('operations').size))
  find.querySelector('output').textContent = count === 1 ? '1 operation' : count + ' operations'
  return found
}

const ui = SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#swagger-ui',
  deepLinking: true,
  validatorUrl: null,
  plugins: [() => ({ fn: { opsFilter } })],
})

find.addEventListener('submit', (event) => event.preventDefault())
find.addEventListener('input', () => {
  const text = find.elements.text.value.trim()
  if (text === '') find.querySelector('output').textContent = ''
  ui.layoutActions.updateFilter(text === '' ? false : text)
})

const form = document.getElementById('sign-in')
const problem = form.querySelector('[role=alert]')

async function showSession() {
  const answer = await (await fetch('/api/v1/auth/session')).json()
  const user = answer.data?.profile
  form.hidden = user != null
  document.getElementById('signed-in').textContent =
    user == null ? 'Sign in to try the operations, or authorize with a key.' : 'Signed in as ' + user.username + ': the operations that you try act as this user.'
}

form.addEventListener('submit', async (event) => {
  event.preventDefault()
  problem.hidden = true
  const { tenant, ...body } = Object.fromEntries(new FormData(form))
  try {
    const response = await fetch('/api/v1/auth/session', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...(tenant !== '' && { 'X-Tenant-Slug': tenant }) },
      body: JSON.stringify(body),
    })
    if (!response.ok) throw (await response.json()).error
    form.reset()
    await showSession()
  } catch (error) {
    problem.textContent = String(error)
    problem.hidden = false
  }
})
void showSession()
`
