import { expect, test } from 'vitest'
import type { HeardDigit } from '../../../../engine/media/digits/heard-digit.ts'
import { HeardDigits } from '../../../../engine/media/digits/heard-digits.ts'

function rig() {
  const told: HeardDigit[] = []
  const time = { now: 0 }
  const digits = new HeardDigits({
    isRelay: (address) => address === '192.0.2.1',
    tell: (digit) => digit.session === 'known' && told.push(digit) > 0,
    now: () => time.now,
  })
  const receive = (callid: string, source = '192.0.2.1', rest: object = {}): void =>
    digits.received(
      Buffer.from(JSON.stringify({ callid, source_tag: 'a', event: 1, duration: 100, ...rest })),
      source,
    )
  const ignored = () => digits.telemetry()['media_digits_ignored_total']
  return { digits, receive, told, time, ignored }
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
