import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { paying, seedFor } from '../sipp/call-case.ts'
import { onSqlite } from '../support/on-sqlite.ts'
import { openPeer, startWithNode } from '../support/scripted-node.ts'
import { sdp, type SipPeer } from '../support/sip-peer.ts'
import type { TollgateProcess } from '../support/tollgate-process.ts'

/**
 * Writes down, from two seconds after the start on, each stop of the event loop that is longer than all before. What a
 * thread beside it stood still, too, is no stop of the loop: the machine did not run the process.
 */
const watchLoop = `
  import { Worker } from 'node:worker_threads'
  const shared = new SharedArrayBuffer(8)
  const beside = \`
    const stood = new Float64Array(require('node:worker_threads').workerData)
    let last = performance.now()
    setInterval(() => {
      const now = performance.now()
      stood[0] += Math.max(0, now - last - 5)
      last = now
    }, 5)\`
  new Worker(beside, { eval: true, workerData: shared, execArgv: [] }).unref()
  const stood = new Float64Array(shared)
  let last = performance.now() + 2000, longest = 0, before = 0
  setInterval(() => {
    const now = performance.now()
    const stop = now - last - 5 - (stood[0] - before)
    before = stood[0]
    last = Math.max(now, last)
    if (stop <= longest) return
    longest = stop
    process.stderr.write('stopped for ' + Math.round(stop) + ' ms\\n')
  }, 5).unref()`
const watched = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(watchLoop)}` }

const longestStop = ({ log }: TollgateProcess): number =>
  Math.max(0, ...log.map((line) => Number(/^stopped for (\d+) ms$/.exec(line)?.[1] ?? 0)))

/** Each lock here is held for longer. */
const bearableMs = 900

function dial(caller: SipPeer, tollgate: TollgateProcess) {
  const plain = caller.leg(`sip:18005551212@127.0.0.1:${tollgate.sipPort}`)
  const leg = { ...plain, from: plain.from.replace('sip:peer@', `sip:${paying}@`) }
  caller.request('INVITE', leg, { body: sdp('caller') })
  return leg
}

async function answer(node: SipPeer): Promise<void> {
  node.reply(await node.next('INVITE'), 200, { tag: 'b', body: sdp('answer') })
  await node.next('ACK')
}

onSqlite('file')(
  "another process's lock stops neither the loop nor answers; while records cannot be stored new calls are refused",
  async () => {
    const { node, tollgate } = await startWithNode((ports) => seedFor(ports), watched)
    const key = (await tollgate.run(['key', 'create', '--name', 'all', '--scopes', '*'])).trim()
    const caller = await openPeer(tollgate)
    const other = new Database(tollgate.databasePath)
    onTestFinished(() => void other.close())
    const readiness = async () =>
      (await fetch(`http://127.0.0.1:${tollgate.apiPort}/readyz`)).status

    other.exec('BEGIN EXCLUSIVE')
    const talking = dial(caller, tollgate)
    const written = fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1/tenants`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ slug: 'new', name: 'New', domains: ['new.example'] }),
    })
    await answer(node)
    caller.learn(talking, await caller.next('200 INVITE'))
    caller.request('ACK', talking)
    other.exec('ROLLBACK')
    expect((await written).status).toBe(201)

    other.exec('BEGIN EXCLUSIVE')
    caller.request('BYE', talking)
    node.reply(await node.next('BYE'), 200)
    await caller.next('200 BYE')
    await expect.poll(readiness).toBe(503)
    const refused = dial(caller, tollgate)
    expect((await caller.next('503 INVITE')).get('Retry-After')).toBe('5')
    caller.request('ACK', refused)
    other.exec('ROLLBACK')
    const calls = await tollgate.waitForCalls(2)
    expect(calls.toSorted((a, b) => a.sip_code - b.sip_code)).toMatchObject([
      { call_id: talking.callId, sip_code: 200, disposition: 'ANSWERED' },
      { call_id: refused.callId, sip_code: 503, denial_code: 'storage_unavailable' },
    ])
    expect(longestStop(tollgate)).toBeLessThan(bearableMs)
  },
)

test('a seed of 60,000 rates stops neither the loop nor calls', async () => {
  const { node, tollgate } = await startWithNode((ports) => seedFor(ports), watched)
  const caller = await openPeer(tollgate)
  const rates = Array.from({ length: 60_000 }, (_, index) => ({
    rate_plan: 'large',
    prefix: String(200_000 + index),
    rate_per_minute: '0.02',
  }))
  const file = join(tollgate.folder, 'rates.json')
  writeFileSync(file, JSON.stringify({ rate_plans: [{ name: 'large', currency: 'USD' }], rates }))
  const seeding = { isOver: false }
  const seeded = tollgate.run(['seed', file]).finally(() => (seeding.isOver = true))
  let answered = 0
  while (!seeding.isOver) {
    const leg = dial(caller, tollgate)
    await answer(node)
    caller.learn(leg, await caller.next('200 INVITE'))
    caller.request('ACK', leg)
    caller.request('BYE', leg)
    node.reply(await node.next('BYE'), 200)
    await caller.next('200 BYE')
    answered += 1
  }
  expect(await seeded).toContain('rates: 60000 created')
  const calls = await tollgate.waitForCalls(answered)
  expect(calls.filter(({ disposition }) => disposition !== 'ANSWERED')).toEqual([])
  expect(answered).toBeGreaterThan(3)
  expect(longestStop(tollgate)).toBeLessThan(bearableMs)
})
