/**
 * Calls of real phones through a real relay: media flows while they hold, transfer, crash and
 * restart.
 */
import { expect, onTestFinished, test } from 'vitest'
import { isDictionary } from '../../engine/media/relay/bencode.ts'
import type { NgValue } from '../../engine/media/relay/relays.ts'
import type { CallQuality } from '../../schema/contracts/field-values.ts'
import { Baresip } from '../support/baresip.ts'
import { RtpEngine } from '../support/rtpengine.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { domain, threePhones, passwordOf } from '../support/two-phones.ts'
import { eventually } from '../support/waiting.ts'

/** The tone that each phone sends. */
const tones = { '101': 500, '102': 800, '103': 1_300 } as const

async function serve() {
  const relay = await RtpEngine.start()
  onTestFinished(() => relay.stop())
  const settings = { RTPENGINE: relay.setting, MEDIA_POLICY: 'anchor' }
  const tollgate = await TollgateProcess.start(threePhones, settings)
  onTestFinished(() => tollgate.stop())
  return { relay, tollgate }
}

async function phone({ sipPort }: TollgateProcess, user: keyof typeof tones): Promise<Baresip> {
  const account = { user, domain, sipPort, password: passwordOf(user) }
  const started = await Baresip.start({ ...account, toneHz: tones[user] })
  onTestFinished(() => started.stop())
  await started.registered()
  return started
}

/** Phone 101 talks to 102, and each hears the other's tone. */
async function talk(tollgate: TollgateProcess) {
  const [one, two] = await Promise.all([phone(tollgate, '101'), phone(tollgate, '102')])
  await one.command('dial', `sip:102@${domain}`)
  await Promise.all([one.next('CALL_ESTABLISHED'), two.next('CALL_ESTABLISHED')])
  await Promise.all([one.hears(tones['102']), two.hears(tones['101'])])
  return { one, two }
}

/** The only session there is. */
async function onlySession(relay: RtpEngine): Promise<string> {
  return eventually(async () => {
    const [id, ...others] = await relay.sessions()
    if (id === undefined || others.length > 0) throw new Error(`${others.length} other sessions`)
    return id
  })
}

/** `name` of a dictionary, or of the first one in a list. */
function field(value: NgValue | undefined, name: string): NgValue | undefined {
  if (isDictionary(value)) return value[name]
  const [first] = typeof value === 'object' ? value : []
  return isDictionary(first) ? first[name] : undefined
}

/** RTP packets that the relay has had from each side of a session: two numbers. */
async function packetsIn(relay: RtpEngine, session: string): Promise<readonly number[]> {
  const { tags = {} } = await relay.query(session)
  return Object.values(tags).map((tag: NgValue) => {
    const rtp = field(field(tag, 'medias'), 'streams')
    return Number(field(field(rtp, 'stats'), 'packets') ?? 0)
  })
}

/** Waits until the relay has had more from both sides, and both phones have had more of it. */
async function mediaFlows(relay: RtpEngine, session: string, ...phones: readonly Baresip[]) {
  const before = await packetsIn(relay, session)
  await Promise.all(phones.map((each) => each.hearsMore()))
  await eventually(async () => {
    const now = await packetsIn(relay, session)
    const isMore = now.map((packets, side) => packets > (before[side] ?? 0) + 10)
    expect(isMore).toEqual([true, true])
  })
}

/** Waits until the calls that go on are in these states. */
async function callsAre({ apiPort }: TollgateProcess, token: string, ...states: readonly string[]) {
  await eventually(async () => {
    const answer = await fetch(`http://127.0.0.1:${apiPort}/api/v1/pbx/calls/active`, {
      headers: { Authorization: `Bearer ${token}` },
    })
    const live = (await answer.json()) as readonly { readonly state: string }[]
    expect(live.map(({ state }) => state).toSorted()).toEqual(states)
  })
}

function keyOf(tollgate: TollgateProcess): Promise<string> {
  return tollgate.createKey('--name', 'desk', '--kind', 'pbx', '--scopes', '*')
}

/** Each call has one record, and what was heard in it. */
async function expectRecords(tollgate: TollgateProcess, ...numbers: readonly string[]) {
  await tollgate.waitForCalls(numbers.length)
  const records = tollgate.query<{
    readonly destination_number: string
    readonly media_quality: string
  }>('SELECT * FROM cdr ORDER BY destination_number')
  expect(records.map((record) => record.destination_number)).toEqual(numbers)
  for (const record of records) {
    expect(record).toMatchObject({ disposition: 'ANSWERED', is_recovered: 0 })
    const { caller, callee } = JSON.parse(record.media_quality) as CallQuality
    for (const heard of [caller, callee]) expect(heard?.packets).toBeGreaterThan(10)
  }
  expect(tollgate.countUnstored()).toBe(0)
}

test('two phones talk, hold, resume, and one transfers the other to a third', async () => {
  const { relay, tollgate } = await serve()
  const token = await keyOf(tollgate)
  const three = await phone(tollgate, '103')
  const { one, two } = await talk(tollgate)
  const session = await onlySession(relay)
  await mediaFlows(relay, session, one, two)

  await one.command('hold')
  await callsAre(tollgate, token, 'HELD')
  await one.command('resume')
  await callsAre(tollgate, token, 'ACTIVE')
  await mediaFlows(relay, session, one, two)

  await one.command('transfer', `sip:103@${domain}`)
  await three.next('CALL_ESTABLISHED')
  await one.next('CALL_CLOSED')
  await three.hears(tones['102'])
  const next = await onlySession(relay)
  expect(next).not.toBe(session)
  await mediaFlows(relay, next, two, three)
  await two.command('hangup')
  await three.next('CALL_CLOSED')
  await expectRecords(tollgate, '102', '103')
  await relay.idle()
  expect(tollgate.faults).toEqual([])
})

test('the phones hear each other while the process is killed, and hold and resume afterwards', async () => {
  const { relay, tollgate } = await serve()
  const token = await keyOf(tollgate)
  const { one, two } = await talk(tollgate)
  const session = await onlySession(relay)
  await tollgate.kill()
  await mediaFlows(relay, session, one, two)
  await tollgate.restart()
  await callsAre(tollgate, token, 'ACTIVE')
  await mediaFlows(relay, session, one, two)
  await Promise.all([one.hears(tones['102']), two.hears(tones['101'])])

  await one.command('hold')
  await callsAre(tollgate, token, 'HELD')
  await one.command('resume')
  await callsAre(tollgate, token, 'ACTIVE')
  expect(await onlySession(relay)).toBe(session)
  await mediaFlows(relay, session, one, two)
  await one.command('hangup')
  await two.next('CALL_CLOSED')
  await expectRecords(tollgate, '102')
  await relay.idle()
  expect(tollgate.faults).toEqual([])
})
