/**
 * Calls go on over `kill -9`: whatever a party, or an operator, does with a call still works, and
 * it is paid once.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { checked } from '../../schema/journal/line-buffer.ts'
import { cents, paying, seedFor } from '../sipp/call-case.ts'
import {
  agreeing,
  anotherCall,
  answered,
  inviteFrom,
  ringing,
  settled,
  stillThere,
  talking,
  type TalkingCall,
} from '../support/node-call.ts'
import { sdp, type Leg, type SipPeer } from '../support/sip-peer.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { UnattendedCalls } from '../support/unattended-calls.ts'
import { eventually } from '../support/waiting.ts'

interface Live {
  readonly uuid: string
  readonly state: string
  readonly answer_stamp: string
  readonly cost: number
  readonly cost_exact: string
  readonly duration_seconds: number
}

/** The fields of the live list for a call as long as it goes on. */
const lasting = ({
  answer_stamp: _at,
  cost: _cost,
  cost_exact: _exact,
  duration_seconds: _seconds,
  ...rest
}: Live) => rest

const live = async ({ api }: TalkingCall) => (await api('/pbx/calls/active')) as readonly Live[]

/** Waits until the journal has so many calls with this text in a line. */
const journalled = (tollgate: TollgateProcess, text: string, count = 1): Promise<void> =>
  eventually(() => {
    const calls = tollgate
      .journal()
      .filter((line) => line.includes(text))
      .map((line) => /[\da-f]{8}-[\da-f-]{27}/.exec(line)?.[0])
    expect(new Set(calls).size).toBe(count)
  })

/**
 * Waits until the ACK of each caller is in the journal: without it the next process hears the
 * caller by a second one.
 */
const acknowledged = (tollgate: TollgateProcess): Promise<void> =>
  eventually(() => {
    const states = new Map<string | undefined, string>()
    for (const line of tollgate.journal())
      if (line.includes('{"saved":')) states.set(/[\da-f]{8}-[\da-f-]{27}/.exec(line)?.[0], line)
    for (const state of states.values()) expect(state).toContain('"phase":"answered"')
  })

async function crash(tollgate: TollgateProcess): Promise<void> {
  await acknowledged(tollgate)
  await tollgate.kill()
  await tollgate.restart()
}

/** `from` changes the session; the other side hears of it in its own dialog, and agrees. */
async function reinvite(
  [from, leg]: readonly [SipPeer, Leg],
  [to, other]: readonly [SipPeer, Leg],
  name: string,
): Promise<void> {
  from.request('INVITE', leg, { body: sdp(name) })
  const offer = await inviteFrom(from, to)
  expect(offer.body).toContain(`s=${name}`)
  expect(offer.get('To')).toBe(other.from)
  expect(offer.get('From')).toBe(other.to)
  to.reply(offer, 200, { body: sdp(`${name} answered`) })
  expect((await from.next('200 INVITE')).body).toContain(`s=${name} answered`)
  from.request('ACK', leg)
  await to.next('ACK')
}

/** Both can change the session, and messages in the dialog pass. */
async function goesOn({ caller, leg, node, nodeLeg }: TalkingCall): Promise<void> {
  await reinvite([caller, leg], [node, nodeLeg], 'by the caller')
  await reinvite([node, nodeLeg], [caller, leg], 'by the node')
  caller.request('INFO', leg, { body: 'Signal=5', contentType: 'application/dtmf-relay' })
  const info = await node.next('INFO')
  expect(info.body).toBe('Signal=5')
  node.reply(info, 200)
  await caller.next('200 INFO')
}

const hangUps: Record<string, (call: TalkingCall) => Promise<void>> = {
  caller: async ({ caller, leg, node }) => {
    caller.request('BYE', leg)
    node.reply(await node.next('BYE'), 200)
    await caller.next('200 BYE')
  },
  callee: async ({ caller, node, nodeLeg }) => {
    node.request('BYE', nodeLeg)
    caller.reply(await caller.next('BYE'), 200)
    await node.next('200 BYE')
  },
  api: async (call) => {
    const [{ uuid: callUuid } = { uuid: '' }] = await live(call)
    await call.api('/telephony/hangup', { call_uuid: callUuid })
    call.node.reply(await call.node.next('BYE'), 200)
    call.caller.reply(await call.caller.next('BYE'), 200)
  },
}

test('both sides change the session after two crashes, and the call is hung up by caller, callee or API', async () => {
  const first = await talking()
  const calls = [
    first,
    await answered(await anotherCall(first)),
    await answered(await anotherCall(first)),
  ]
  const before = (await live(first)).map(lasting)
  expect(before).toHaveLength(3)
  await crash(first.tollgate)
  expect((await live(first)).map(lasting)).toEqual(expect.arrayContaining(before))
  await stillThere(...calls)
  for (const call of calls) await goesOn(call)
  await crash(first.tollgate)
  await stillThere(...calls)
  for (const call of calls) await goesOn(call)
  // That by the API is of the only call that is left.
  for (const [index, by] of ['caller', 'callee', 'api'].entries()) {
    const call = calls[index]
    if (call !== undefined) await hangUps[by]?.(call)
    await first.tollgate.waitForCalls(index + 1)
    await eventually(async () => expect(await live(first)).toHaveLength(2 - index))
  }
  await settled(first, 3)
  const stored = first.tollgate.calls()
  expect(stored.map((call) => call.hangup_by).toSorted()).toEqual(['api', 'callee', 'caller'])
  expect(new Set(stored.map((call) => call.call_uuid))).toEqual(
    new Set(before.map(({ uuid }) => uuid)),
  )
  for (const call of stored)
    expect(call).toMatchObject({ is_recovered: 0, disposition: 'ANSWERED' })
})

test('money that runs out ends the call to the second, crash or not', async () => {
  const number = '15550009999'
  const call = await talking({ customer: { number, balance: '0.08' } })
  await crash(call.tollgate)
  await stillThere(call)
  agreeing(call.caller, call.node)
  const [record] = await call.tollgate.waitForCalls(1)
  expect(record).toMatchObject({ billsec: 8, cost_micros: cents(8), is_recovered: 0 })
  expect(call.tollgate.wallet('caller')).toEqual({ balance: 0, ledger: 0, debits: 1 })
})

/** Rewrites the lines of the journal that name a call. */
function spoil(tollgate: TollgateProcess, uuid: string, how: (line: string) => string): void {
  for (const file of tollgate.journalFiles()) {
    const lines = readFileSync(file, 'utf8').split('\n')
    const spoilt = lines.map((line) => (line.includes(uuid) ? how(line) : line))
    writeFileSync(file, spoilt.join('\n'))
  }
}

const damages: Record<string, (line: string) => string> = {
  'a line that is damaged': (line) => line.replace('callUuid', 'callUuld'),
  'a state that is cut off': (line) => {
    const [head = '', state] = line.slice(9).split('\t')
    return state === undefined ? line : String(checked(`${head}\t${state.slice(0, 40)}`)).trimEnd()
  },
}

test.each(Object.keys(damages))(
  '%s costs that call alone, and the log names it',
  async (damage) => {
    const call = await talking()
    const [{ uuid } = { uuid: '' }] = await live(call)
    const other = await answered(await anotherCall(call))
    await acknowledged(call.tollgate)
    await call.tollgate.kill()
    spoil(call.tollgate, uuid, (line) => damages[damage]?.(line) ?? line)
    await call.tollgate.restart()
    await expect.poll(() => call.tollgate.log.join()).toContain(uuid)
    expect((await live(call)).map((one) => one.uuid)).not.toContain(uuid)
    await stillThere(other)
    await goesOn(other)
    await hangUps['caller']?.(other)
    await eventually(async () => expect(await live(call)).toEqual([]))
    const records = (await call.tollgate.waitForCalls(1)).filter((one) => one.call_uuid !== uuid)
    expect(records).toMatchObject([{ is_recovered: 0, disposition: 'ANSWERED' }])
  },
)

test('parties that hang up while no process is there pay for no more than they talked, others for all of it', async () => {
  const start = (port: number): Promise<TollgateProcess> => TollgateProcess.start(seedFor([port]))
  const ways = ['both', 'nobody', 'callee', 'silently', 'caller'] as const
  const options = { calls: 10, ways, from: paying }
  const { tollgate, unattended } = await UnattendedCalls.begin(start, options)
  onTestFinished(() => tollgate.stop())
  onTestFinished(() => unattended.stop())
  await tollgate.kill()
  unattended.leave(4_000)
  await pause(6_000)
  await tollgate.restart()
  const { talked, charged, calls, lasting, paidWhole, wrong } = await unattended.sums(tollgate)
  expect(charged).toBeLessThanOrEqual(talked + calls)
  expect([wrong, paidWhole]).toEqual([0, lasting])
  const { balance, ledger } = tollgate.wallet('paying')
  expect(balance).toBe(ledger)
  expect(tollgate.openCalls()).toEqual([])
})

test('a call that rang at the crash has a record, costs nothing, and its callee is let go', async () => {
  const call = await ringing()
  const { tollgate, node, invite } = call
  await journalled(tollgate, '"begun"')
  await crash(tollgate)
  expect(await tollgate.waitForCalls(1)).toMatchObject([
    { disposition: 'FAILED', cost_micros: 0, billsec: 0 },
  ])
  node.reply(invite, 180, { tag: 'b' })
  expect((await node.next('CANCEL')).get('Via')).toBe(invite.get('Via'))
  node.reply(invite, 200, { tag: 'b', body: sdp('too late') })
  await node.next('ACK')
  node.reply(await node.next('BYE'), 200)
  await settled(call, 1)
})
