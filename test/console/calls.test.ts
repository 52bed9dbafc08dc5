/**
 * Calls in the console: live ones, those that have ended, and one of them. The tests share one
 * program.
 */
import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import { wavHeader } from '../../engine/media/recording/audio/convert.ts'
import { invite, placeCall, shareConsole } from '../support/console-rig.ts'
import type { SipPeer } from '../support/sip-peer.ts'
import { eventually } from '../support/waiting.ts'

const { rig } = shareConsole()
let page: Page
beforeAll(() => {
  page = rig().console.page
})

const row = (text: string) => page.getByRole('row').filter({ hasText: text })
const dialog = () => page.getByRole('dialog')

async function hangUp(caller: SipPeer): Promise<void> {
  await row('18005551212')
    .getByRole('button', { name: /^Hang up/ })
    .click()
  await dialog().getByRole('button', { name: 'Hang up' }).click()
  caller.reply(await caller.next('BYE'), 200)
  await page.getByText('No call is in progress.').waitFor()
}

/** Downloads the file of a link. */
async function download(link: string): Promise<Buffer> {
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: link }).click(),
  ])
  return readFileSync(await file.path())
}

test('costs tick without asking for the list; a transfer that fails and a refused listening say why', async () => {
  await page.goto('/console/calls')
  await page.getByText('Live', { exact: true }).waitFor()
  const caller = await placeCall(rig())
  const call = row('18005551212')
  await call.getByText('active').waitFor()
  let lists = 0
  page.on('request', (request) => (lists += request.url().endsWith('/calls/active') ? 1 : 0))
  const cost = () => call.getByText(/USD$/).textContent()
  const before = await cost()
  // As many decimals as the plan has: the points of all stand below each other.
  expect(before).toMatch(/^\d+\.\d{4} USD$/)
  await eventually(async () => expect(await cost()).not.toBe(before))
  expect(lists).toBeLessThan(2)

  await call.getByRole('button', { name: /^Transfer/ }).click()
  await dialog().getByLabel('Destination').fill('18005550000')
  await dialog().getByRole('button', { name: 'Transfer' }).click()
  const [node] = rig().nodes
  node?.reply(await node.next('INVITE'), 486, { tag: 'busy' })
  await page.getByText('The transfer has begun.').waitFor()
  await call.getByText(/transfer failed: 18005550000 486/).waitFor()

  await call.getByRole('button', { name: /^Listen/ }).click()
  expect(await rig().console.inaccessible()).toEqual([])
  await dialog().getByLabel('Extension of the supervisor').fill('999')
  await dialog().getByRole('button', { name: 'Listen' }).click()
  await dialog()
    .getByText(/extension not found/i)
    .waitFor()
  await page.keyboard.press('Escape')
  await dialog().getByRole('button', { name: 'Discard' }).click()
  await hangUp(caller)
})

test('a call that has ended is found by either number, and its files are downloaded', async () => {
  await page.goto('/console/history')
  await page.getByRole('button', { name: 'Add a filter' }).click()
  await page.getByRole('combobox', { name: 'Filter', exact: true }).selectOption('number')
  await page.getByRole('textbox', { name: 'Number' }).fill('+12025550100')
  await page.getByRole('button', { name: 'Apply' }).click()
  await row('18005551212').waitFor()
  await page.waitForURL(/number=%2B12025550100/)
  const csv = await download('Export CSV')
  expect(csv.toString()).toContain(',12025550100,18005551212,')
  await row('18005551212').getByText('answered').waitFor()
  await row('18005551212').getByText('paying').waitFor()
  await row('18005551212').getByRole('link').first().click()
  await page.getByText(/^12025550100 talked to 18005551212 through .* paid by paying/).waitFor()
  await page.getByText(/Ended by an operator or a program, by the API/).waitFor()
  expect(await page.getByRole('heading', { name: 'Media quality' }).count()).toBe(0)
  const parties = page.locator('.parties')
  await parties.getByText('12025550100').waitFor()
  await parties.getByText(`127.0.0.1:${rig().nodes[0]?.port}`).waitFor()
  await page
    .getByText(/: INVITE$/)
    .first()
    .click()
  await page
    .getByText(/^INVITE sip:18005551212@[^]*Call-ID: /)
    .first()
    .waitFor()
  const pcap = await download('Messages as pcap')
  expect(pcap.readUInt32BE()).toBe(0xa1b2c3d4)
  expect(pcap.includes('INVITE sip:18005551212')).toBe(true)
  const vcon: unknown = JSON.parse((await download('Call as vCon (JSON)')).toString())
  expect(vcon).toMatchObject({ parties: [{ tel: 'tel:12025550100' }, { tel: 'tel:18005551212' }] })
})

test('a failed call says who could not pay, and what the wallet had', async () => {
  const { caller } = await invite(rig().tollgate, '12025550133')
  await caller.next('402 INVITE')
  await rig().tollgate.waitForCalls(3)
  await page.goto('/console/history')
  await row('12025550133').getByText('✕ failed').waitFor()
  await row('12025550133')
    .getByText(/wallet had too little money/)
    .waitFor()
  await row('12025550133').getByRole('link').first().click()
  await page
    .getByText(/Charging refuses the call.* too little money .*has 0\.00 USD to spend/)
    .waitFor()
  await page.getByText(/refused with 402 by the platform.* too little money .*: top up/).waitFor()
})

/** 0.1 s of silence. */
const silence = Buffer.concat([wavHeader(800, 2), Buffer.alloc(3_200)])

test('a recording is heard where it is shown, and loaded only then; media quality is that of both directions', async () => {
  const [stored] = await rig().tollgate.waitForCalls(1)
  const path = `/console/calls/${stored?.call_uuid}`
  const heard = { mos: 4.31, mos_source: 'measured', jitter_ms: 2.5, packet_loss_pct: 0 }
  const media_quality = { caller: { ...heard, round_trip_ms: null, packets: 500 }, callee: null }
  const recording = { duration: 1, bytes: silence.length, sha256: 'ab' }
  await page.route('**/reports/cdrs?*', async (route) => {
    const answer = (await (await route.fetch()).json()) as { records: object[] }
    const records = answer.records.map((record) => ({ ...record, media_quality, recording }))
    return route.fulfill({ json: { ...answer, records } })
  })
  let loads = 0
  await page.route('**/recording', (route) => {
    loads += 1
    return route.fulfill({ contentType: 'audio/wav', body: silence })
  })
  await page.goto(path)
  const ofCaller = page.getByRole('row').filter({ hasText: 'the caller' })
  await ofCaller.getByText('4.31 (measured by the relay)').waitFor()
  await ofCaller.getByText('2.5 ms').waitFor()
  expect(await page.getByText('unknown', { exact: true }).count()).toBe(6)
  expect(await rig().console.inaccessible()).toEqual([])
  expect(loads).toBe(0)
  const played = `new Promise((resolve, reject) => {
    const audio = document.querySelector('audio')
    audio.onended = () => resolve('ended')
    audio.onerror = () => reject(new Error(audio.error.message))
    audio.muted = true
    audio.play().catch(reject)
  })`
  expect(await page.evaluate(played)).toBe('ended')
  expect(loads).toBeGreaterThan(0)
  await page.unroute('**/recording')
  await page.unroute('**/reports/cdrs?*')
})
