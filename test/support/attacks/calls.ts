/** What moves a live call without being one of its parties. */
import { DigestPhone } from '../digest-phone.ts'
import { sdp, SipPeer, type Leg, type PeerMessage } from '../sip-peer.ts'
import { type Attack, domain, repeatUntil, type World } from './world.ts'

/** Two phones that talk, and one more address of the first. */
interface Talking {
  readonly caller: DigestPhone
  readonly called: SipPeer
  readonly callerLeg: Leg
  readonly calledLeg: Leg
}

const account = (user: string) => ({ user, domain, password: `secret-${user}` })

async function phoneAt(world: World, address: string, user: string): Promise<DigestPhone> {
  const listener = { ...world.tollgate.listener(), advertisedHost: address }
  return DigestPhone.open(listener, account(user))
}

async function ring(caller: DigestPhone, called: SipPeer): Promise<readonly [Leg, PeerMessage]> {
  const leg = await caller.call('102')
  const invite = await called.next('INVITE')
  called.reply(invite, 180, { tag: 'b' })
  return [leg, invite]
}

async function talk(caller: DigestPhone, called: SipPeer): Promise<Talking> {
  const [callerLeg, invite] = await ring(caller, called)
  called.reply(invite, 200, { tag: 'b', body: sdp('answer') })
  await called.next('ACK')
  const answer = await caller.answerTo(callerLeg)
  caller.peer.learn(callerLeg, answer)
  caller.peer.request('ACK', callerLeg)
  return { caller, called, callerLeg, calledLeg: called.calledLeg(invite, 'b') }
}

const premium = 'Refer-To: <sip:19005551234@acme.example>'

/** What a stranger writes who has read a trace. */
const forged: readonly (readonly [method: string, headers: readonly string[], body?: string])[] = [
  ['REFER', [premium]],
  ['INVITE', [], sdp('thief')],
  ['UPDATE', [], sdp('thief')],
  ['INFO', ['X-Thief: 1']],
  ['NOTIFY', ['Event: refer', 'Subscription-State: active']],
  ['MESSAGE', []],
  ['PRACK', ['RAck: 1 1 INVITE']],
  ['OPTIONS', []],
  ['ACK', [], sdp('thief')],
  ['BYE', []],
]

/** What of it had an effect. */
async function forge(
  thief: SipPeer,
  { caller, called }: Talking,
  leg: Leg,
): Promise<readonly string[]> {
  const breaches: string[] = []
  for (const [method, headers, body = ''] of forged) {
    thief.request(method, leg, { headers, body })
    if (method === 'ACK') continue
    const answer = await thief.next(({ status }) => status >= 200)
    if (![401, 403, 407].includes(answer.status)) breaches.push(`${method}: ${answer.status}`)
  }
  // The ACK of an answer that was sent twice has no body.
  const heard = [...caller.peer.inbox, ...called.inbox].filter(
    ({ method, body }) => method !== '' && (method !== 'ACK' || body !== ''),
  )
  return [...breaches, ...heard.map(({ startLine }) => `a party was sent ${startLine}`)]
}

const forgedRequests: Attack = {
  name: 'forged requests in calls',
  guarantee:
    'who knows Call-ID and tags of a call, and has another address, neither ends nor moves it',
  async run(world, until) {
    const thief = await SipPeer.open({ ...world.tollgate.listener(), advertisedHost: '127.0.6.66' })
    const moved = await phoneAt(world, '127.0.6.9', '101')
    const caller = await phoneAt(world, '127.0.6.1', '101')
    const phone = await phoneAt(world, '127.0.6.2', '102')
    const called = phone.peer
    const breaches: string[] = []
    let tries = 0
    try {
      // Calls of proven addresses are let in however busy the machine is.
      for (const each of [caller, phone]) await each.signOn()
      await repeatUntil(until, async () => {
        const talking = await talk(caller, called)
        for (const leg of [talking.callerLeg, talking.calledLeg]) {
          breaches.push(...(await forge(thief, talking, { ...leg, cseq: leg.cseq + 10 })))
          tries += forged.length
        }
        breaches.push(...(await hangUpFrom(moved, talking)))
        const [leg, invite] = await ring(caller, called)
        thief.request('CANCEL', { ...leg, to: leg.to })
        const refusal = await thief.next(({ status }) => status >= 200)
        if (refusal.status !== 481) breaches.push(`CANCEL: ${refusal.status}`)
        called.reply(invite, 486, { tag: 'b' })
        const { status } = await caller.answerTo(leg)
        if (status !== 486) breaches.push(`after a forged CANCEL the caller was told ${status}`)
        caller.peer.request('ACK', leg)
        for (const { inbox } of [caller.peer, called, thief]) inbox.length = 0
        tries += 1
      })
    } finally {
      for (const { peer } of [moved, caller, phone]) peer.close()
      thief.close()
    }
    if (world.dialledOut.some((number) => number.startsWith('1900'))) breaches.push('it was paid')
    return { tried: `${tries} requests in calls of others`, breaches }
  },
}

/** A phone that has got another address proves who it is. */
async function hangUpFrom(moved: DigestPhone, { called, callerLeg }: Talking) {
  moved.peer.request('BYE', callerLeg)
  const challenge = await moved.answerTo(callerLeg)
  if (challenge.status !== 407) return [`a phone elsewhere: ${challenge.status}`]
  moved.learn(challenge)
  const headers = [`Proxy-Authorization: ${moved.credentials('BYE', callerLeg.uri)}`]
  moved.peer.request('BYE', callerLeg, { headers })
  called.reply(await called.next('BYE'), 200)
  const { status } = await moved.answerTo(callerLeg)
  return status === 200 ? [] : [`a phone elsewhere with its password: ${status}`]
}

export const calls: readonly Attack[] = [forgedRequests]
