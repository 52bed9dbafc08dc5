import { expect, test } from 'vitest'
import {
  CarrierRegistration,
  type CarrierAccount,
  type RegisterRequest,
  type RegisterResult,
  grantedSecondsOf,
  retryAfterMs,
} from '../../../engine/trunks/carrier-registration.ts'
import { ManualTime } from '../../support/manual-time.ts'

const account: CarrierAccount = {
  registrars: ['sip:192.0.2.1:5060;transport=udp', 'sip:192.0.2.2:5060;transport=udp'],
  username: 'acme',
  password: 'secret',
  realm: null,
  domain: null,
  expiresSeconds: 3_600,
}

const answered = (
  status: number,
  headers: Readonly<Record<string, string>> = {},
): RegisterResult => ({ kind: 'answered', status, reason: `reason ${status}`, headers })
const ok = (expires: number) =>
  answered(200, { contact: `<sip:acme@198.51.100.1:5060>;expires=${expires}` })

/** A carrier that gives these answers one after the other, the last one again and again. */
function start(...answers: RegisterResult[]) {
  const time = new ManualTime(0)
  const sent: RegisterRequest[] = []
  const changes: string[] = []
  const registration = new CarrierRegistration(account, {
    now: time.now,
    schedule: time.schedule,
    random: () => 0.5,
    newCallId: () => 'call-id',
    send: (request) => {
      sent.push(request)
      return Promise.resolve(answers[Math.min(sent.length, answers.length) - 1] ?? ok(60))
    },
    onChange: (state) => void changes.push(state),
  })
  registration.begin()
  /** Moves time in steps, with the answers arriving in between. */
  const pass = async (seconds: number): Promise<void> => {
    for (let step = 0; step < seconds; step += 1) {
      await Promise.resolve()
      await Promise.resolve()
      time.advance(1_000)
      await Promise.resolve()
      await Promise.resolve()
    }
  }
  return { time, sent, changes, registration, pass }
}

test('our SIP server being away is no failure of the carrier: it is asked again, and soon', async () => {
  const { sent, changes, registration, pass } = start(
    { kind: 'unsent' },
    { kind: 'unsent' },
    ok(60),
  )
  await pass(1)
  expect(registration.report()).toMatchObject({ state: 'registering', lastAnswer: { status: 0 } })
  await pass(2)
  expect(new Set(sent.map(({ registrar }) => registrar))).toEqual(new Set([account.registrars[0]]))
  expect(changes).toEqual(['registering', 'registered'])
})

test('a registration is refreshed before what was granted runs out, for as long as it lives', async () => {
  const { sent, changes, registration, pass } = start(ok(100))
  await pass(1)
  expect(registration.report()).toMatchObject({
    state: 'registered',
    registrar: 'sip:192.0.2.1:5060;transport=udp',
    expiresAt: 100_000,
    lastAnswer: { status: 200 },
  })
  await pass(400)
  // 82.5 seconds each: the middle of 75 to 90 %.
  expect(sent).toHaveLength(5)
  expect(changes).toEqual(['registering', 'registered'])
  expect(
    sent.every(({ callId, expiresSeconds }) => callId === 'call-id' && expiresSeconds === 3_600),
  ).toBe(true)
  const numbers = sent.map(({ cseq }) => cseq)
  expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
  expect(new Set(numbers).size).toBe(numbers.length)
})

test('credentials that are refused are tried rarely, and more and more so', async () => {
  const { sent, registration, pass } = start(answered(403))
  await pass(1)
  expect(registration.report()).toMatchObject({
    state: 'failed',
    expiresAt: null,
    lastAnswer: { status: 403, reason: 'reason 403' },
  })
  await pass(30)
  expect(sent).toHaveLength(1)
  await pass(3_600)
  expect(sent.length).toBeGreaterThan(5)
  expect(sent.length).toBeLessThan(14)
})

test('after silence the next registrar is asked, soon', async () => {
  const { sent, registration, pass } = start({ kind: 'silence' }, answered(503), ok(3_600))
  await pass(30)
  const [one, two] = account.registrars
  expect(sent.map(({ registrar }) => registrar)).toEqual([one, two, one])
  expect(registration.report()).toMatchObject({ state: 'registered', registrar: one })
})

test('Retry-After is respected', async () => {
  const { sent, pass } = start(answered(503, { 'retry-after': '300 (maintenance)' }), ok(3_600))
  await pass(299)
  expect(sent).toHaveLength(1)
  await pass(10)
  expect(sent).toHaveLength(2)
})

test('a carrier that wants a longer interval gets it at once; one that cannot be pleased is refused', async () => {
  const brief = answered(423, { 'min-expires': '7200' })
  const { sent, registration, pass } = start(brief, ok(7_200))
  await pass(1)
  expect(sent.map(({ expiresSeconds }) => expiresSeconds)).toEqual([3_600, 7_200])
  expect(registration.report().state).toBe('registered')
  const stubborn = start(brief)
  await stubborn.pass(1)
  expect(stubborn.sent).toHaveLength(2)
  expect(stubborn.registration.report().state).toBe('failed')
})

test('one lost refresh does not end a registration; when it lapses, it has failed', async () => {
  const { changes, registration, pass } = start(ok(100), { kind: 'silence' })
  await pass(95)
  expect(registration.report()).toMatchObject({ state: 'registered', lastAnswer: { status: 0 } })
  await pass(6)
  expect(registration.report()).toMatchObject({ state: 'failed', expiresAt: null })
  expect(changes).toEqual(['registering', 'registered', 'failed'])
})

test('a refresh that is refused ends the registration at once', async () => {
  const { registration, pass } = start(ok(100), answered(403))
  await pass(85)
  expect(registration.report()).toMatchObject({ state: 'failed', expiresAt: null })
})

test('who is registered is removed at the end, and nothing is left waiting', async () => {
  const { time, sent, registration, pass } = start(ok(100))
  await pass(1)
  await registration.end()
  expect(sent.at(-1)).toMatchObject({ expiresSeconds: 0 })
  expect(registration.report().state).toBe('unregistered')
  expect(time.waiting).toBe(0)
  await pass(200)
  expect(sent).toHaveLength(2)
})

const least = () => 0
const most = () => 1 - Number.EPSILON

test('waiting doubles from failure to failure, up to ten minutes, and is spread by half', () => {
  const waits = [1, 2, 3, 20].map((failures) => retryAfterMs(failures, 0, undefined, most))
  expect(waits.map(Math.round)).toEqual([4_000, 8_000, 16_000, 600_000])
  expect(retryAfterMs(1, 0, undefined, least)).toBe(2_000)
  expect(retryAfterMs(1, 403, undefined, least)).toBe(30_000)
})

const ours = '<sip:me@192.0.2.1:5060>'

test.each([
  [{ contact: '<sip:me@10.0.0.1>;expires=60' }, 60],
  [{ contact: '<sip:you@10.0.0.9>;expires=1, <sip:me@10.0.0.1>;q=0.5;Expires="90"' }, 90],
  [{ contact: '<sip:ME@10.0.0.1;transport=tcp>', expires: '120' }, 120],
  [{ contact: '<sip:you@10.0.0.9>;expires=1', expires: '120' }, 120],
  [{}, 3_600],
  // Bindings of others, behind and before ours.
  [{ contact: `<sip:me@198.51.100.99:5060>;expires=3400, ${ours};expires=60` }, 60],
  [{ contact: `${ours};expires=60,<sip:me@198.51.100.99:5060>;expires=3400` }, 60],
  [{ contact: `<sip:me@198.51.100.99:5060>;expires=5, ${ours};expires=60` }, 60],
  [{ contact: `"A, B" <sip:me@198.51.100.9>;expires=5,sip:me@192.0.2.1:5060;expires=60` }, 60],
  // As the registrar may write ours (RFC 3261 §19.1.4).
  [{ contact: '<SIP:me@192.0.2.1:5060;ob>;expires=70, <sip:me@192.0.2.9>;expires=60' }, 70],
  [{ contact: '<sip:%6de@192.0.2.1:5060>;expires=70, <sip:me@192.0.2.9>;expires=60' }, 70],
  [{ contact: '"me" <sip:me@192.0.2.1:5060>;q=0.7;expires=70,<sip:me@192.0.2.9>;expires=60' }, 70],
  [{ contact: `${ours}, <sip:me@192.0.2.9>;expires=60`, expires: '120' }, 120],
  // Rewritten by a NAT: none is equal.
  [{ contact: '<sip:me@198.51.100.99>;expires=3400, <sip:me@203.0.113.99:1024>;expires=60' }, 60],
  [{ contact: '<sip:me@203.0.113.99:1024>;expires=60, <sip:me@198.51.100.99>;expires=3400' }, 60],
  [{ contact: '<sip:s-77@203.0.113.99:1024>;expires=60' }, 60],
  // A registrar may only shorten what was asked for.
  [{ contact: `${ours};expires=7200` }, 3_600],
  [{ expires: '7200' }, 3_600],
])(
  '%j grants %i seconds',
  ({ contact, expires }: { contact?: string; expires?: string }, seconds) => {
    const own = { user: 'me', contact: 'sip:me@192.0.2.1:5060' }
    expect(grantedSecondsOf({ contact, expires }, own, 3_600)).toBe(seconds)
  },
)
