import { expect, test } from 'vitest'
import { type HeardDigit, HeardDigits } from '../../../../engine/media/digits/heard-digits.ts'

function rig() {
  const told: HeardDigit[] = []
  const known = new Set(['known'])
  const time = { now: 0 }
  const digits = new HeardDigits({
    isRelay: (address) => address === '192.0.2.1',
    tell: (digit) => known.has(digit.session) && told.push(digit) > 0,
    now: () => time.now,
  })
  const receive = (callid: string, source = '192.0.2.1', rest: object = {}): void =>
    digits.received(
      Buffer.from(JSON.stringify({ callid, source_tag: 'a', event: 1, duration: 100, ...rest })),
      source,
    )
  const ignored = () => digits.telemetry()['media_digits_ignored_total']
  return { digits, receive, told, known, time, ignored }
}

test('digits of relays are told; what comes from elsewhere, or is too long, is ignored and counted', () => {
  const { receive, told, ignored } = rig()
  receive('known')
  receive('known', '::ffff:192.0.2.1')
  expect(told).toHaveLength(2)
  receive('known', '192.0.2.2')
  receive('known', '192.0.2.1', { padding: 'x'.repeat(3_000) })
  receive('unknown')
  expect(told).toHaveLength(2)
  expect(ignored()).toBe(3)
})

test('a relay that tells of thousands at once is heard again a moment later', () => {
  const { receive, told, time, ignored } = rig()
  for (let n = 0; n < 2_500; n += 1) receive('known')
  expect([told.length, ignored()]).toEqual([2_000, 500])
  time.now += 100
  receive('known')
  expect(told).toHaveLength(2_001)
})

test('in an upgrade, digits of calls that the old process has go to it', () => {
  const [old, fresh] = [rig(), rig()]
  fresh.digits.passOn((digit) => old.digits.take({ ...digit, session: 'known' }))
  fresh.receive('of the old one')
  expect(old.told).toEqual([{ session: 'known', from: 'a', digit: { code: '1', durationMs: 100 } }])
  old.digits.take({ session: 'over', from: 'a', digit: { code: '1', durationMs: 100 } })
  expect([fresh.ignored(), old.ignored()]).toEqual([0, 1])
})

test('while the old process ends, digits of its calls wait until these are here', () => {
  const { digits, receive, told, known, ignored } = rig()
  digits.passOn(() => expect.unreachable('nothing takes it'))
  digits.hold()
  receive('known')
  receive('restored')
  receive('over')
  expect(told).toHaveLength(1)
  known.add('restored')
  digits.release()
  receive('over')
  expect(told.map(({ session }) => session)).toEqual(['known', 'restored'])
  expect(ignored()).toBe(2)
})

test('of what waits in an upgrade there is a bound', () => {
  const { digits, receive, ignored } = rig()
  digits.hold()
  for (let n = 0; n < 1_500; n += 1) receive('restored')
  expect(ignored()).toBe(500)
})
