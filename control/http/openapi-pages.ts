/** The HTML pages of the API: the front page, and the reference with its sign-in form. */

/** Blocks external resources. Swagger UI needs inline styles, and `data:` images in its style sheet. */
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

/** `GET /docs`. */
export const docsPage = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <link rel="icon" href="data:," />
    <title>Tollgate API</title>
    <link rel="stylesheet" href="/docs/swagger-ui.css" />
    <style>
      #sign-in { max-width: 1420px; margin: 1rem auto 0; padding: 0 20px; font: 1rem/1.5 system-ui, sans-serif; }
      #sign-in input { margin-right: 1rem; padding: 0.25rem; }
      #sign-in output { margin-left: 1rem; }
    </style>
  </head>
  <body>
    <form id="sign-in">
      <label>User <input name="username" autocomplete="username" required /></label>
      <label>Password <input name="password" type="password" autocomplete="current-password" required /></label>
      <button>Sign in</button>
      <output role="status"></output>
    </form>
    <div id="swagger-ui"></div>
    <script src="/docs/swagger-ui-bundle.js"></script>
    <script src="/docs/start.js"></script>
  </body>
</html>
`

/** `GET /docs/start.js`. The session token stays in the memory of the page. */
export const docsScript = `const ui = SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#swagger-ui',
  deepLinking: true,
  validatorUrl: null,
})

const form = document.getElementById('sign-in')
form.addEventListener('submit', async (event) => {
  event.preventDefault()
  const say = (text) => (form.querySelector('output').textContent = text)
  try {
    const response = await fetch('/api/v1/auth/login', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(Object.fromEntries(new FormData(form))),
    })
    const answer = await response.json()
    if (!response.ok) return say(answer.error)
    ui.preauthorizeApiKey('session', answer.data.token)
    form.elements.password.value = ''
    say('Signed in as ' + answer.data.user.username)
  } catch (error) {
    say(String(error))
  }
})
`
