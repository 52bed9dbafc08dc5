/** What an operator of several nodes sees in the console. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openBrowser } from '../support/console-browser.ts'
import { startConsoleRig } from '../support/console-rig.ts'

let browser: Browser
beforeAll(async () => {
  browser = await openBrowser()
})
afterAll(() => browser.close())

const nodeOf = (name: string, state: string, live_calls: number) => ({
  name,
  state,
  live_calls,
  epoch: 3,
  address: 'http://10.0.0.1:8080',
  version: '1.0.0',
  started_at: '2026-11-23T10:00:00.000Z',
  heartbeat_at: '2026-11-23T10:00:05.000Z',
  is_this: name === 'sbc-1',
  differing_settings: name === 'sbc-2' ? ['EXIT_CODES'] : [],
})

test('nodes that do not answer are named over every screen, until they answer again; Now lists the nodes', async () => {
  const { console } = await startConsoleRig(browser)
  const { page, complaints } = console
  const data = [nodeOf('sbc-1', 'serving', 12), nodeOf('sbc-2', 'lost', 7)]
  await page.route('**/api/v1/nodes', (route) => route.fulfill({ json: { success: true, data } }))
  await page.getByRole('link', { name: 'Now' }).click()
  const row = page.getByRole('row').filter({ hasText: 'sbc-2' })
  await row.getByText('lost', { exact: true }).waitFor()
  expect(await row.getByRole('cell').allTextContents()).toEqual(
    expect.arrayContaining(['sbc-2 ', 'lost differs in EXIT_CODES', '7', '3']),
  )
  const banner = page.getByText(/^No answer from/)
  expect(await banner.isVisible()).toBe(false)

  await page.route('**/metrics/telemetry', async (route) => {
    const response = await route.fetch()
    const headers = { ...response.headers(), 'x-unreachable-nodes': 'sbc-2, sbc-3' }
    await route.fulfill({ response, headers })
  })
  await page.getByText('No answer from sbc-2, sbc-3: what only these nodes know').waitFor()
  expect(await console.inaccessible()).toEqual([])
  await page.unroute('**/metrics/telemetry')
  await banner.waitFor({ state: 'hidden' })
  expect(complaints).toEqual([])
})

test('the event stream says whose events are missing', async () => {
  const { console } = await startConsoleRig(browser)
  const { page } = console
  const body = (names: readonly string[]): string =>
    `: welcome\n\nevent: stream.partial\ndata: ${JSON.stringify({ unreachable_nodes: names })}\n\n`
  let names = ['sbc-3']
  await page.route('**/api/v1/events', (route) =>
    route.fulfill({ contentType: 'text/event-stream', body: body(names) }),
  )
  await page.reload()
  await page.getByText('No answer from sbc-3: what only this node knows').waitFor()
  await page.getByRole('link', { name: 'Customers' }).click()
  await page.getByText('No answer from sbc-3').waitFor()
  names = []
  await page.getByText(/^No answer from/).waitFor({ state: 'hidden' })
})
