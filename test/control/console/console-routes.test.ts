import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readConsoleOf } from '../../../control/console/console-files.ts'
import { apiWith, openControl } from '../../support/control.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const folder = temporaryFolder()
mkdirSync(join(folder, 'assets'))
writeFileSync(join(folder, 'index.html'), '<!doctype html><title>Tollgate</title>')
writeFileSync(join(folder, 'signed-in.html'), '<!doctype html><title>Tollgate, at once</title>')
for (const ending of ['', '.br', '.gz']) {
  writeFileSync(join(folder, 'assets', `console-A1.js${ending}`), `script${ending}`)
  writeFileSync(join(folder, `guide.html${ending}`), `guide${ending}`)
}
const files = readConsoleOf(folder)
const control = await openControl()
const { deps } = control
const built = apiWith({ ...deps, console: files })
await control.user('ada', 'admin')
await control.user('tessa', 'admin', await control.tenant('acme'))

const ownPage = { 'Sec-Fetch-Site': 'same-origin', Origin: 'http://localhost' }

/** The cookie of a new session, as a browser sends it back. */
async function signedIn(username = 'ada'): Promise<string> {
  const body = { username, password: 'correct horse' }
  const { headers } = await control.request('/auth/session', { headers: ownPage, body })
  return headers.get('set-cookie')?.split(';')[0] ?? ''
}

const session = await signedIn()

test.each(['/', '/console', '/console/calls', '/console/calls/0b4c1c1e', '/console/calls?q=49'])(
  '%s is the page, which loads nothing from elsewhere and runs nothing inline',
  async (path) => {
    const page = await built.request(path)
    expect([page.status, page.headers.get('content-type')]).toEqual([
      200,
      'text/html; charset=UTF-8',
    ])
    expect(await page.text()).toBe(files.page)
    const policy = page.headers.get('content-security-policy') ?? ''
    expect(policy).toMatch(/^default-src 'self'; /)
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).not.toMatch(/unsafe|https?:|\*|data:/)
    expect(page.headers.get('cache-control')).toBe('no-cache')
    expect(page.headers.get('x-content-type-options')).toBe('nosniff')
    expect(page.headers.get('referrer-policy')).toBe('no-referrer')
    expect(page.headers.get('cross-origin-opener-policy')).toBe('same-origin')
  },
)

const withCookie = (path: string, Cookie: string) => built.request(path, { headers: { Cookie } })

test('the page for a browser with a session loads the screens, too, and no cache mixes the two', async () => {
  const answers = await Promise.all(
    [session, 'a=b'].map((cookie) => withCookie('/console/calls', cookie)),
  )
  expect(await Promise.all(answers.map((each) => each.text()))).toEqual([
    files.signedInPage,
    files.page,
  ])
  for (const { headers } of answers)
    expect([headers.get('vary'), headers.get('cache-control')]).toEqual(['Cookie', 'no-cache'])
})

test.each([
  ['/', ['metrics/telemetry', 'metrics/history', 'anomalies?limit=50']],
  ['/console/calls', ['pbx/calls/active']],
  ['/console/calls/0b4c1c1e', []],
  ['/console/constructor', []],
])('the page %s names what it asks for first to a browser with a session', async (path, first) => {
  const { headers } = await withCookie(path, session)
  expect(headers.get('link')?.split(', ')).toEqual(
    ['auth/session', ...first].map(
      (each) => `</api/v1/${each}>; rel=preload; as=fetch; crossorigin`,
    ),
  )
  expect((await built.request(path)).headers.get('link')).toBe(null)
})

test.each([
  ['/', ['pbx/calls/active']],
  ['/console/now', []],
  ['/console/customers', ['customers?limit=200']],
])('the page %s names nothing that the user of a tenant is refused', async (path, first) => {
  const { headers } = await withCookie(path, await signedIn('tessa'))
  const named = headers.get('link')?.match(/(?<=api\/v1\/)[^>]+/g)
  expect(named).toEqual(['auth/session', ...first])
})

test('a browser whose session is over, or never was, gets the page of everybody', async () => {
  const over = await signedIn()
  const close = { method: 'DELETE', headers: { ...ownPage, Cookie: over } }
  expect((await control.request('/auth/session', close)).status).toBe(200)
  for (const cookie of [over, 'tollgate_session=x.y.z', '__Host-tollgate_session=x.y.z']) {
    const page = await withCookie('/console/calls', cookie)
    expect([await page.text(), page.headers.get('link')]).toEqual([files.page, null])
  }
})

test.each([
  ['gzip, deflate, br', 'br', 'script.br'],
  ['gzip', 'gzip', 'script.gz'],
  ['br;q=0, gzip', 'gzip', 'script.gz'],
  ['identity', null, 'script'],
])('an asset for Accept-Encoding %s is %s', async (accepted, encoding, body) => {
  const asset = await built.request('/console/assets/console-A1.js', {
    headers: { 'Accept-Encoding': accepted },
  })
  expect(asset.headers.get('content-type')).toBe('text/javascript; charset=utf-8')
  expect(asset.headers.get('content-encoding')).toBe(encoding)
  expect(asset.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
  expect(asset.headers.get('vary')).toBe('Accept-Encoding')
  expect(await asset.text()).toBe(body)
})

test.each(['..%2Findex.html', 'console-A1.js.br', '%2e%2e', 'no-such-file.js'])(
  'the file %s is 404',
  async (name) => {
    expect((await built.request(`/console/assets/${name}`)).status).toBe(404)
  },
)

test('the guide is a page like the console, compressed, and asked for again each time', async () => {
  const page = await built.request('/guide', { headers: { 'Accept-Encoding': 'br' } })
  expect([page.status, await page.text()]).toEqual([200, 'guide.br'])
  expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(page.headers.get('content-security-policy')).toMatch(/^default-src 'self'; /)
  expect(page.headers.get('cache-control')).toBe('no-cache')
})

test('without a build, / is the front page and the console is 404', async () => {
  const sources = apiWith({ ...deps, console: undefined })
  expect(await (await sources.request('/')).text()).toContain('/docs')
  for (const path of ['/console/calls', '/guide'])
    expect((await sources.request(path)).status).toBe(404)
})

test('the customer edge has no console', async () => {
  const { edge } = await openControl()
  for (const path of ['/', '/guide', '/console', '/console/assets/console-A1.js'])
    expect([path, (await edge.request(path)).status]).toEqual([path, 403])
})
