/** The built program and a call through it between two scripted peers: a customer and a node. */
import { expect } from 'vitest'
import { cents, paying, seedFor } from '../sipp/call-case.ts'
import { openPeer, startWithNode } from './scripted-node.ts'
import { sdp, type Leg, type PeerMessage, type SipPeer } from './sip-peer.ts'
import type { TollgateProcess } from './tollgate-process.ts'
import { eventually } from './waiting.ts'

export interface RingingCall {
  readonly tollgate: TollgateProcess
  readonly api: (path: string, body?: object) => Promise<unknown>
  readonly caller: SipPeer
  readonly leg: Leg
  readonly node: SipPeer
  readonly invite: PeerMessage
}

interface CallOptions {
  /** One more customer, who then is the caller. */
  readonly customer?: { readonly number: string; readonly balance: string }
}

/** A customer calls a node, which rings. */
export async function ringing({ customer }: CallOptions = {}): Promise<RingingCall> {
  const { number = paying, balance = '' } = customer ?? {}
  const more = { name: 'caller', rate_plan: 'retail', numbers: [number], balance }
  const customers = customer === undefined ? [] : [more]
  const { node, tollgate } = await startWithNode((ports) => seedFor(ports, { customers }))
  const token = await tollgate.createKey('--name', 'crm', '--kind', 'pbx', '--scopes', '*')
  const api = async (path: string, body?: object): Promise<unknown> => {
    const response = await fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1${path}`, {
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    })
    return response.json()
  }
  return anotherCall({ tollgate, api, node }, number)
}

/** Beside those that go on. */
export async function anotherCall(
  { tollgate, api, node }: Pick<RingingCall, 'tollgate' | 'api' | 'node'>,
  number = paying,
): Promise<RingingCall> {
  const caller = await openPeer(tollgate)
  const plain = caller.leg(`sip:18005551212@127.0.0.1:${tollgate.sipPort}`)
  const leg = { ...plain, from: plain.from.replace('sip:peer@', `sip:${number}@`) }
  caller.request('INVITE', leg, { body: sdp('caller') })
  const invite = await inviteFrom(caller, node)
  node.reply(invite, 180, { tag: 'b' })
  await caller.next(180)
  return { tollgate, api, caller, leg, node, invite }
}

/**
 * An INVITE of `from` as it comes to `to`; one that is refused instead fails at once, with the
 * reason.
 */
export async function inviteFrom(from: SipPeer, to: SipPeer): Promise<PeerMessage> {
  const refusal = await eventually(() => {
    const found = from.inbox.find(({ status }) => status >= 300)
    if (found === undefined && !to.inbox.some(({ method }) => method === 'INVITE'))
      throw new Error('neither an INVITE nor a refusal has come')
    return found
  })
  if (refusal !== undefined) throw new Error(`refused: ${refusal.text}`)
  return to.next('INVITE')
}

export interface TalkingCall extends RingingCall {
  readonly nodeLeg: Leg
}

/** The node has answered, and both talk. */
export async function talking(options: CallOptions = {}): Promise<TalkingCall> {
  return answered(await ringing(options))
}

/** The node answers; both talk. */
export async function answered(call: RingingCall): Promise<TalkingCall> {
  const { caller, leg, node, invite } = call
  node.reply(invite, 200, { tag: 'b', body: sdp('node') })
  caller.learn(leg, await caller.next('200 INVITE'))
  caller.request('ACK', leg)
  await node.next('ACK')
  return { ...call, nodeLeg: node.calledLeg(invite, 'b') }
}

/**
 * The program has started again, and asks both parties of each call whether they are still there.
 */
export async function stillThere(...calls: readonly TalkingCall[]): Promise<void> {
  for (const { caller, node, leg, nodeLeg } of calls)
    for (const [peer, { callId }] of [
      [caller, leg],
      [node, nodeLeg],
    ] as const) {
      const of = (method: string) => (message: PeerMessage) =>
        message.method === method && message.get('Call-ID') === callId
      peer.reply(await peer.next(of('INVITE')), 200, { body: sdp('still there') })
      await peer.next(of('ACK'))
    }
}

/** Whatever comes from now on is answered. */
export function agreeing(...peers: readonly SipPeer[]): void {
  for (const peer of peers) for (const method of ['BYE', 'CANCEL']) peer.always(method, 200)
}

/** As many records as calls, nothing live, nothing open, and every second is paid once. */
export async function settled({ tollgate, api }: RingingCall, count: number): Promise<void> {
  await tollgate.waitForCalls(count)
  await eventually(async () => expect(await api('/pbx/calls/active')).toEqual([]))
  const calls = tollgate.calls()
  expect(calls).toHaveLength(count)
  for (const call of calls) {
    expect(call.cost_micros).toBe(cents(call.billsec))
    expect(call.billsec > 0).toBe(call.disposition === 'ANSWERED')
  }
  const paid = calls.filter((call) => call.cost_micros > 0)
  const left = cents(1_000) - paid.reduce((sum, call) => sum + call.cost_micros, 0)
  expect(tollgate.wallet('paying')).toEqual({ balance: left, ledger: left, debits: paid.length })
  expect(tollgate.openCalls()).toEqual([])
  expect(tollgate.faults).toEqual([])
}
