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
const { deps } = await openControl()
const built = apiWith({ ...deps, console: files })

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

test.each(['tollgate_session', '__Host-tollgate_session'])(
  'the page for a browser with the cookie %s loads the screens, too, and no cache mixes the two',
  async (name) => {
    const answers = [
      await built.request('/console/calls', { headers: { Cookie: `a=b; ${name}=x.y.z` } }),
      await built.request('/console/calls', { headers: { Cookie: 'a=b' } }),
    ]
    expect(await Promise.all(answers.map((each) => each.text()))).toEqual([
      files.signedInPage,
      files.page,
    ])
    for (const { headers } of answers)
      expect([headers.get('vary'), headers.get('cache-control')]).toEqual(['Cookie', 'no-cache'])
  },
)

test('the page names the session to a browser that has one, and nothing that only a session may read', async () => {
  const Cookie = 'tollgate_session=x.y.z'
  const { headers } = await built.request('/console/calls', { headers: { Cookie } })
  expect(headers.get('link')).toBe('</api/v1/auth/session>; rel=preload; as=fetch; crossorigin')
  expect((await built.request('/console/calls')).headers.get('link')).toBe(null)
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
