/** The program's machine has its clock set while people talk. Real time passes, a second of it. */
import { setTimeout as pass } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { cents, paying, seedFor } from '../sipp/call-case.ts'
import { openPeer, startWithNode } from '../support/scripted-node.ts'
import { sdp } from '../support/sip-peer.ts'

/** In the program: SIGWINCH sets the clock an hour forward, then two back, then one forward and so on. */
const settable = `--import=data:text/javascript,${encodeURIComponent(`
  const real = Date.now
  let offset = 0
  let next = 3600000
  Date.now = () => real() + offset
  process.on('SIGWINCH', () => {
    offset += next
    next = next > 0 ? -2 * 3600000 : 3600000
    process.stderr.write('{"msg":"the clock is set"}\\n')
  })
`)}`

test('calls are charged for what was talked, an hour forward and two back, and none is cut', async () => {
  const { node, tollgate } = await startWithNode(seedFor, { NODE_OPTIONS: settable })
  const caller = await openPeer(tollgate)
  const called = `sip:18005551212@127.0.0.1:${tollgate.sipPort}`
  const setClock = async (): Promise<void> => {
    const isSet = new Promise<void>((resolve) => {
      tollgate.onLog = (line) => line.includes('the clock is set') && resolve()
    })
    tollgate.signal('SIGWINCH')
    await isSet
  }
  for (const calls of [1, 2]) {
    const plain = caller.leg(called)
    const leg = { ...plain, from: plain.from.replace('sip:peer@', `sip:${paying}@`) }
    caller.request('INVITE', leg, { body: sdp('caller') })
    const invite = await node.next('INVITE')
    node.reply(invite, 200, { tag: 'b', body: sdp('node') })
    caller.learn(leg, await caller.next('200 INVITE'))
    caller.request('ACK', leg)
    await node.next('ACK')
    await setClock()
    await pass(1_100)
    expect(tollgate.calls()).toHaveLength(calls - 1)
    caller.request('BYE', leg)
    await caller.next('200 BYE')
    node.reply(await node.next('BYE'), 200)
    await tollgate.waitForCalls(calls)
  }
  for (const { billsec, duration, cost_micros: cost } of tollgate.calls()) {
    expect(billsec).toBeGreaterThan(1)
    expect(billsec).toBeLessThan(30)
    expect(duration).toBeLessThan(30)
    expect(cost).toBe(cents(billsec))
  }
  expect(tollgate.faults).toEqual([])
})
