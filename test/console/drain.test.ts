/** A node is drained in the console while SIPp calls: no call fails, and none begins there afterwards. */
import { expect, onTestFinished, test } from 'vitest'
import { paying, startCase } from '../sipp/call-case.ts'
import { openBrowser, openConsole } from '../support/console-browser.ts'
import { admin } from '../support/console-rig.ts'
import { callWith } from '../support/sipp.ts'

const ROUND_ROBIN = 4
/** Few enough at once that the wallet has what all of them hold, also when the machine stands still for a moment. */
const RATE = 5
const CALLS = 30
/** Begun when the node is drained. */
const LATER = 10

test('a node that is drained while SIPp calls loses none of its calls, and gets no more', async () => {
  const environment = { ADMIN_PASSWORD: admin.password }
  const nodes = ['answers', 'answers']
  const { tollgate, uris } = await startCase({ nodes, algorithm: ROUND_ROBIN, environment })
  const browser = await openBrowser()
  onTestFinished(() => browser.close())
  const { page, signIn, complaints } = await openConsole(browser, tollgate)
  await signIn(admin.username, admin.password)
  await page.getByRole('link', { name: 'Nodes' }).click()
  const node = page.getByRole('row').filter({ hasText: uris[0] ?? '' })
  await node.getByText('in service').waitFor()

  const place = (calls: number) =>
    callWith('inbound/answered.xml', tollgate.sipPort, {
      calls,
      rate: RATE,
      keys: { caller: paying },
    })
  const caller = place(CALLS)
  await tollgate.waitForCalls(5)
  await node.getByRole('button', { name: /^Drain/ }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Drain' }).click()
  await node.getByText('drained: it may be stopped').waitFor()
  const drainedAt = Date.now()

  expect(await caller).toEqual({ exitCode: 0, errors: '' })
  expect(await place(LATER)).toEqual({ exitCode: 0, errors: '' })
  const calls = await tollgate.waitForCalls(CALLS + LATER)
  expect(calls.filter(({ disposition }) => disposition !== 'ANSWERED')).toEqual([])
  expect(new Set(calls.map((call) => call.node))).toEqual(new Set(uris))
  const later = calls.filter(({ start_stamp: start }) => start > drainedAt)
  expect(later.length).toBeGreaterThanOrEqual(LATER)
  expect(new Set(later.map((call) => call.node))).toEqual(new Set([uris[1]]))
  expect(complaints).toEqual([])
})
