/**
 * Each screen of the console as axe sees it: WCAG 2.2 AA, wide and as narrow as a phone, each light
 * and dark. What opens over a screen has tests of its own (`dialogs.test.ts`).
 */
import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { chooseScreen, hrefs, postFrom } from '../support/console-browser.ts'
import { admin, placeCall, shareConsole } from '../support/console-rig.ts'

const { rig, open } = shareConsole()

const source = readFileSync('control/console/web/app/screens.ts', 'utf8')
/** How many screens the console has, and how many of them show one thing, such as one call. */
const known = {
  screens: source.match(/\btitle: '/g)?.length,
  items: source.match(/\boneTitle: '/g)?.length,
}

const overflows = 'document.documentElement.scrollWidth > document.documentElement.clientWidth'

/** Names of the tables of which a part is out of sight at the right. */
const cutTables = `[...document.querySelectorAll('.table > .scroll')]
  .filter((box) => box.scrollWidth > box.clientWidth)
  .map((box) => box.getAttribute('aria-label'))`

/** One of each that the rig lacks, so that its own screen is reached. */
const made = [
  [
    '/routing/carriers',
    { name: 'telco', direction: 'out', gateways: [{ host: '127.0.0.1', port: 9 }] },
  ],
  ['/webhooks', { url: 'https://hooks.invalid/in' }],
  ['/application-keys', { name: 'ci' }],
  [
    '/pbx/extensions',
    { extension: '100', display_name: 'Desk', tenant: 'acme', password: 'a secret of the desk' },
  ],
] as const

test('axe finds nothing on any screen, none is wider than a phone, and no table is cut', async () => {
  await placeCall(rig())
  for (const [path, body] of made) expect(await postFrom(rig().console.page, path, body)).toBe(201)
  const proposal = {
    tool: 'revoke_sbc_api_key',
    arguments: { identifier: 'ci' },
    reason: 'it looks leaked',
  }
  expect(await postFrom(rig().console.page, '/mcp/tools/propose_change', proposal)).toBe(200)
  for (const [colorScheme, width] of [
    ['light', 1_280],
    ['dark', 360],
  ] as const) {
    const opened = await open({ colorScheme, width })
    const { page, complaints, signIn, inaccessible, tooPale } = opened
    await page.getByRole('heading', { level: 1 }).waitFor()
    expect([await inaccessible(), await tooPale()]).toEqual([[], []])
    await page.evaluate(watchJumps)
    await signIn(admin.username, admin.password)
    const judge = async (path: string): Promise<void> => {
      await arrived(page)
      expect([path, await inaccessible()]).toEqual([path, []])
      expect.soft([path, await tooPale()]).toEqual([path, []])
      expect([path, await page.evaluate(overflows)]).toEqual([path, false])
      if (width > 1_000) expect.soft([path, await page.evaluate(cutTables)]).toEqual([path, []])
      expect.soft([path, await jumps(page)]).toEqual([path, 'nothing'])
    }
    const paths = await hrefs(page, 'nav a[href^="/console/"]')
    expect(paths).toHaveLength(known.screens ?? 0)
    const items: string[] = []
    for (const path of paths) {
      await chooseScreen(page, path)
      await judge(path)
      items.push(...(await hrefs(page, `main a[href^="${path}/"]`)).slice(0, 1))
    }
    expect(items).toHaveLength(known.items ?? 0)
    for (const path of items) {
      await chooseScreen(page, path.slice(0, path.lastIndexOf('/')))
      await page.locator(`main a[href="${path}"]`).first().click()
      await judge(path)
      for (const view of await hrefs(page, `main .tabs a[href^="${path}?"]`)) {
        await page.locator(`main .tabs a[href="${view}"]`).click()
        await judge(view)
      }
    }
    expect(complaints).toEqual([])
  }
})

/** Good is less than 0.1 in all of a visit (Cumulative Layout Shift); this is for one screen. */
const MOST_SHIFT = 0.02

/**
 * Chromium does not count what moves in the half second after a click; the screens open there, so
 * this does.
 */
const watchJumps = `{
  window.shifts = []
  new PerformanceObserver((list) => shifts.push(...list.getEntries())).observe({ type: 'layout-shift', buffered: true })
}`

/** Which elements have moved since it was asked last. */
const jumps = (page: Page): Promise<unknown> =>
  page.evaluate(`(() => {
    const seen = shifts.splice(0)
    if (seen.reduce((sum, { value }) => sum + value, 0) < ${MOST_SHIFT}) return 'nothing'
    return seen.flatMap(({ value, sources }) =>
      sources.map(({ node }) => value.toFixed(3) + ' ' + (node?.outerHTML ?? node?.textContent ?? '').slice(0, 80)))
  })()`)

/** The data of the screen is there. */
async function arrived(page: Page): Promise<void> {
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.getByText('Loading …').first().waitFor({ state: 'hidden' })
}
