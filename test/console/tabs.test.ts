/** Many tabs of the console, and pages that the browser keeps for its back button. */
import type { BrowserContext, Page, Request } from 'playwright-core'
import { expect, test } from 'vitest'
import { row } from '../support/console-browser.ts'
import { placeCall, shareConsole } from '../support/console-rig.ts'
import { eventually } from '../support/waiting.ts'

const { rig, signedIn } = shareConsole()

/** More than the connections that a browser opens to one server. */
const TABS = 9

const live = (page: Page) => page.getByText('Live', { exact: true })

const isStream = (request: Request): boolean => new URL(request.url()).pathname === '/api/v1/events'

function countStreams(context: BrowserContext): { opened: number } {
  const count = { opened: 0 }
  context.on('request', (request) => {
    if (isStream(request)) count.opened += 1
  })
  return count
}

test('nine tabs share one event stream; when the tab that reads it closes, the others go on', async () => {
  const { page } = await signedIn()
  await live(page).waitFor()
  const context = page.context()
  const streams = countStreams(context)
  const others: Page[] = []
  for (let tab = 1; tab < TABS; tab += 1) {
    const other = await context.newPage()
    others.push(other)
    await other.goto('/console/calls')
    await live(other).waitFor()
  }
  expect(streams.opened).toBe(0)
  await page.close()
  await eventually(() => expect(streams.opened).toBe(1))
  await placeCall(rig())
  for (const other of others) await row(other, '12025550100').waitFor()
})

/** As the browser tells a page that it keeps it for its back button, and that it shows it again. */
const tell = (page: Page, event: 'pagehide' | 'pageshow'): Promise<unknown> =>
  page.evaluate(`dispatchEvent(new PageTransitionEvent('${event}', { persisted: true }))`)

test('a page that the browser keeps for its back button holds no connection; shown again, it loads what it missed', async () => {
  const { page } = await signedIn()
  await live(page).waitFor()
  const streams = countStreams(page.context())
  const ended = page.waitForEvent('requestfailed', isStream)
  await tell(page, 'pagehide')
  await ended
  expect(streams.opened).toBe(0)
  const loaded = page.waitForResponse((response) =>
    response.url().includes('/api/v1/pbx/calls/active'),
  )
  await tell(page, 'pageshow')
  await loaded
  await eventually(() => expect(streams.opened).toBe(1))
  await live(page).waitFor()
})
