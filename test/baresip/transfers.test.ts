/** Transfers between real phones: who stays hears the new party, and each call has its record. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Baresip } from '../support/baresip.ts'
import { sdp, SipPeer, type Leg } from '../support/sip-peer.ts'
import { domain, threePhones } from '../support/two-phones.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { finalNotify } from '../support/transfer-rig.ts'
import { eventually } from '../support/waiting.ts'

const seedFor = (deskPort: number) => ({
  ...threePhones,
  dispatcher: [
    {
      endpoint_name: 'pbx',
      set_id: 1,
      algorithm: 8,
      nodes: [{ host: '127.0.0.1', internal_port: deskPort }],
    },
  ],
})

/** A node of ours, which is scripted. */
let desk: SipPeer
let tollgate: TollgateProcess
let phones: Baresip[] = []
let token: string

beforeEach(async () => {
  // Its port goes into the seed, so that it is there before Tollgate, and learns the address later.
  const here = { address: '127.0.0.1', advertisedHost: '127.0.0.1', advertisedPort: 9 }
  const listener = { protocol: 'udp' as const, port: 9, ...here }
  desk = await SipPeer.openPatient(listener)
  tollgate = await TollgateProcess.start(seedFor(desk.port))
  listener.port = tollgate.sipPort
  token = await tollgate.createKey('--name', 'crm', '--kind', 'pbx', '--scopes', '*')
})
afterEach(async () => {
  await Promise.all(phones.map((phone) => phone.stop()))
  phones = []
  desk.close()
  await tollgate.stop()
})

async function phone(user: string, answerMode: 'auto' | 'manual' = 'auto'): Promise<Baresip> {
  const { sipPort } = tollgate
  const account = { user, domain, sipPort, password: `secret-${user}` }
  const started = await Baresip.start({ ...account, answerMode })
  phones.push(started)
  await started.registered()
  return started
}

interface Live {
  readonly uuid: string
  readonly state: string
  readonly transfer: { readonly state: string } | null
}

async function api(path: string, body?: object): Promise<unknown> {
  const response = await fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1${path}`, {
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
  })
  return response.json()
}

const live = async () => (await api('/pbx/calls/active')) as readonly Live[]

/** Waits until the live calls are in these states, and as far transferred. */
async function callsAre(...expected: readonly [state: string, transfer: string | null][]) {
  await eventually(async () => {
    const seen = (await live()).map(({ state, transfer }) => [state, transfer?.state ?? null])
    expect(seen).toEqual(expected)
  })
}

/** `one` calls 102, and both hear each other. */
async function talking(one: Baresip, two: Baresip): Promise<void> {
  await one.command('dial', `sip:102@${domain}`)
  await Promise.all([one.next('CALL_ESTABLISHED'), two.next('CALL_ESTABLISHED')])
  await Promise.all([one.hearsMore(), two.hearsMore()])
  await callsAre(['ACTIVE', null])
}

const callsOf = async (count: number) =>
  (await tollgate.waitForCalls(count)).map((call) => ({
    caller: call.caller_id_number,
    called: call.destination_number,
    disposition: call.disposition,
    by: call.hangup_by,
  }))

test('a phone holds its call and transfers it: the other two hear each other', async () => {
  const [one, two, three] = [await phone('101'), await phone('102'), await phone('103')]
  await talking(one, two)
  await one.command('hold')
  await callsAre(['HELD', null])
  await one.command('transfer', `sip:103@${domain}`)
  await three.next('CALL_ESTABLISHED')
  await one.next('CALL_CLOSED')
  await Promise.all([two.hearsMore(), three.hearsMore()])
  await callsAre(['ACTIVE', 'transferred'], ['ACTIVE', 'transferred'])

  await two.command('hangup')
  await three.next('CALL_CLOSED')
  expect(await callsOf(2)).toEqual(
    expect.arrayContaining([
      { caller: '101', called: '102', disposition: 'ANSWERED', by: 'callee' },
      { caller: '101', called: '103', disposition: 'ANSWERED', by: 'caller' },
    ]),
  )
  await callsAre()
  expect(tollgate.faults).toEqual([])
})

// baresip 1.0.0 has no attended transfer: the transferor is scripted, the others are phones.
test('attended transfer joins two calls: the two phones hear each other', async () => {
  const [two, three] = [await phone('102'), await phone('103')]
  const [first, second] = [await talkTo('102'), await talkTo('103')]
  await Promise.all([two.next('CALL_ESTABLISHED'), three.next('CALL_ESTABLISHED')])
  const { callId, to, from } = second
  const [toTag, fromTag] = [to, from].map((party) => /;tag=(.*)$/.exec(party)?.[1])
  const replaces = encodeURIComponent(`${callId};to-tag=${toTag};from-tag=${fromTag}`)
  const referTo = `Refer-To: <sip:103@${domain}?Replaces=${replaces}>`
  desk.request('REFER', first, { headers: [referTo] })
  await desk.next('202 REFER')
  await finalNotify(desk)
  desk.reply(await desk.next('BYE'), 200)
  desk.request('BYE', first)
  await desk.next('200 BYE')
  await Promise.all([two.hearsMore(), three.hearsMore()])
  await callsAre(['ACTIVE', 'transferred'], ['ACTIVE', 'transferred'])
  await two.command('hangup')
  await three.next('CALL_CLOSED')
  expect(await callsOf(2)).toEqual(
    expect.arrayContaining([
      { caller: '900', called: '102', disposition: 'ANSWERED', by: 'callee' },
      { caller: '900', called: '103', disposition: 'ANSWERED', by: 'caller' },
    ]),
  )
})

/** The scripted side of a call to an extension. */
async function talkTo(number: string): Promise<Leg> {
  const leg = desk.leg(`sip:${number}@${domain}`)
  const own = { ...leg, from: leg.from.replace('sip:peer@', 'sip:900@') }
  desk.request('INVITE', own, { body: sdp('desk', 4_100) })
  desk.learn(own, await desk.next('200 INVITE'))
  desk.request('ACK', own)
  return own
}
