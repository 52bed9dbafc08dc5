/**
 * What settles a dispute about a call, of calls on raw sockets: the number as it was dialled, both
 * numbers as each destination got them, and the price of the answer; also after a crash.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Listener } from '../../engine/sip-server/index.ts'
import { DigestPhone } from '../support/digest-phone.ts'
import { type Leg, type PeerMessage, sdp, SipPeer } from '../support/sip-peer.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { eventually, patientInstances } from '../support/waiting.ts'

const anywhere: Listener = {
  protocol: 'udp',
  address: '127.0.0.1',
  port: 9,
  advertisedHost: '127.0.0.1',
  advertisedPort: 9,
}
const domain = 'acme.example'
const account = { user: '101', domain, password: 'secret-101' }

let south: SipPeer
let north: SipPeer
let tollgate: TollgateProcess
let token: string
let phone: DigestPhone

const seed = () => ({
  tenants: [{ slug: 'acme', domains: [domain] }],
  rate_plans: [{ name: 'retail', tenant: 'acme', currency: 'USD' }],
  rates: [
    {
      rate_plan: 'retail',
      tenant: 'acme',
      prefix: '49',
      rate_per_minute: '6.00',
      first_rate_per_minute: '3.00',
      connect_fee: '0.05',
      first_increment: 30,
      increment: 6,
    },
  ],
  customers: [
    { name: 'acme', tenant: 'acme', rate_plan: 'retail', numbers: ['12025550101'], balance: '50' },
  ],
  extensions: [
    { tenant: 'acme', extension: '101', password: account.password, customer: 'acme' },
  ].map((each) => ({ ...each, display_name: 'Front desk', caller_number: '12025550101' })),
  carriers: [
    { name: 'south', direction: 'out', gateways: [{ host: '127.0.0.1', port: south.port }] },
    { name: 'north', direction: 'out', gateways: [{ host: '127.0.0.1', port: north.port }] },
  ],
  outbound_routes: [
    { name: 'first', prefix: '49', carrier: 'south', priority: 1, strip: 2, prepend: '0' },
    { name: 'second', prefix: '49', carrier: 'north', priority: 2, prepend: '9900' },
  ],
})

beforeAll(async () => {
  south = await SipPeer.openPatient(anywhere)
  north = await SipPeer.openPatient(anywhere)
  for (const peer of [south, north]) peer.always('OPTIONS', 200, { tag: 'probed' })
  tollgate = await TollgateProcess.start(seed(), { ...patientInstances, DRAIN_SECONDS: '0' })
  token = await tollgate.createKey('--name', 'ops', '--scopes', '*')
  phone = await DigestPhone.open(tollgate.listener(), account)
  phone.peer.always('OPTIONS', 200, { tag: 'probed' })
})
afterAll(async () => {
  phone.close()
  south.close()
  north.close()
  await tollgate.stop()
})

interface Talk {
  readonly leg: Leg
  readonly refused: PeerMessage
  readonly answered: PeerMessage
}

/** The first carrier refuses, the second answers. */
async function talk(dialled: string): Promise<Talk> {
  const leg = await phone.call(dialled)
  const refused = await south.next('INVITE')
  south.reply(refused, 503, { tag: `s${dialled}` })
  await south.next('ACK')
  const answered = await north.next('INVITE')
  north.reply(answered, 200, { tag: `n${dialled}`, body: sdp('answer') })
  phone.peer.learn(leg, await phone.answerTo(leg))
  phone.peer.request('ACK', leg)
  await north.next('ACK')
  return { leg, refused, answered }
}

async function hangUp({ leg }: Talk): Promise<void> {
  phone.peer.request('BYE', leg)
  north.reply(await north.next('BYE'), 200)
  await phone.peer.next('200 BYE')
}

/** The record of the last call to this number. */
const recordOf = (number: string) =>
  eventually(async () => {
    const at = (ms: number) => new Date(Date.now() + ms).toISOString()
    const answer = await fetch(
      `http://127.0.0.1:${tollgate.apiPort}/api/v1/reports/cdrs` +
        `?start_date=${at(-3_600_000)}&end_date=${at(3_600_000)}`,
      { headers: { authorization: `Bearer ${token}` } },
    )
    const { records } = (await answer.json()) as { records: Record<string, unknown>[] }
    const found = records.findLast((each) => each['destination_number'] === `+${number}`)
    if (found === undefined) throw new Error(`no record of ${number}`)
    return found
  })

const userOf = (text: string): string => /sips?:([^@;>]*)@/.exec(text)?.[1] ?? ''

const numbersIn = (invite: PeerMessage) => ({
  called: userOf(invite.uri),
  caller: userOf(invite.get('From') ?? ''),
})

/** The record says what the carriers have received, by their own messages. */
function expectEvidence(
  record: Record<string, unknown>,
  dialled: string,
  { refused, answered }: Talk,
): void {
  expect(record).toMatchObject({
    disposition: 'ANSWERED',
    number_dialled: dialled,
    number_sent: numbersIn(answered).called,
    caller_sent: numbersIn(answered).caller,
    attempts: [{ sent: numbersIn(refused) }, { sent: numbersIn(answered) }],
    rate_prefix: '49',
    rate: '6.00',
    rate_first: '3.00',
    connect_fee: '0.05',
    first_increment: 30,
    increment: 6,
  })
}

test('a record has both numbers as they were dialled and as each carrier got them, and the price of the call', async () => {
  const call = await talk('+4930555')
  expect(numbersIn(call.refused).called).toBe('030555')
  expect(numbersIn(call.answered)).toEqual({ called: '99004930555', caller: '12025550101' })
  await hangUp(call)
  const record = await recordOf('4930555')
  expectEvidence(record, '+4930555', call)
  // The fee, and the first increment.
  expect(record).toMatchObject({ billsec: 1, cost_exact: '1.55' })
})

test('so has the record of a call that a crash has ended, and of one that goes on after it', async () => {
  const lost = await talk('+4930666')
  await tollgate.kill()
  // Nothing is known of the call but that it was answered: it cannot go on.
  for (const file of tollgate.journalFiles()) {
    const lines = readFileSync(file, 'latin1').split('\n')
    const kept = lines.filter((line) => !line.includes('{"saved":'))
    writeFileSync(file, kept.join('\n'), 'latin1')
  }
  tollgate.change("UPDATE rate SET rate_per_minute_micros = 1 WHERE prefix = '49'")
  await tollgate.restart()
  const record = await recordOf('4930666')
  expect(record).toMatchObject({ recovered: true })
  expectEvidence(record, '+4930666', lost)

  await tollgate.kill()
  tollgate.change("UPDATE rate SET rate_per_minute_micros = 6000000 WHERE prefix = '49'")
  await tollgate.restart()
  const held = await talk('+4930777')
  await tollgate.kill()
  await tollgate.restart()
  await hangUp(held)
  expectEvidence(await recordOf('4930777'), '+4930777', held)
})
