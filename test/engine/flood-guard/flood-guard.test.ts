import { expect, test } from 'vitest'
import { FloodGuard } from '../../../engine/flood-guard/flood-guard.ts'

const packet = Buffer.from('OPTIONS sip:a@h SIP/2.0\r\nUser-Agent: phone\r\n\r\n')
/** Where a packet comes from. */
const at = (address: string, protocol = 'udp', port = 5_060) => ({ protocol, address, port })
const from = (name: string): Buffer =>
  Buffer.from(`REGISTER sip:a@h SIP/2.0\r\nVia: x\r\nUser-Agent: ${name}\r\n\r\n`)

function guarded(flood = { packetsPerSecond: 10, burst: 20, maxSources: 100 }) {
  const time = { now: 1_000_000_000_000 }
  const logged: string[] = []
  const exempt = new Set<string>()
  const guard = new FloodGuard({
    now: () => time.now,
    isExempt: (address, port) => exempt.has(address) || exempt.has(`${address}:${port}`),
    log: (_level, message, fields) => void logged.push(`${message}: ${String(fields?.['source'])}`),
    flood,
  })
  const admit = (address: string, bytes: Buffer | string = packet): boolean =>
    guard.admit(at(address), bytes)
  const burst = (address: string, count: number): number =>
    Array.from({ length: count }, () => admit(address)).filter(Boolean).length
  return { guard, time, logged, exempt, admit, burst }
}

test('a source may send its burst, then its rate; others are not touched, the log has one line', () => {
  const { burst, time, logged, guard } = guarded()
  expect(burst('192.0.2.1', 1_000)).toBe(20)
  expect(burst('192.0.2.2', 15)).toBe(15)
  time.now += 1_000
  expect(burst('192.0.2.1', 1_000)).toBe(10)
  expect(logged).toEqual(['a source sends too much: the rest is dropped: 192.0.2.1'])
  expect(guard.telemetry()['guard_dropped_flood_total']).toBe(1_970)
})

test('carriers and nodes are never shut out, whatever they send, fail or are called', () => {
  const { guard, burst, exempt, admit, logged } = guarded()
  exempt.add('192.0.2.1:5060')
  for (let count = 0; count < 100; count++) guard.unknownSource(at('192.0.2.1', 'tcp'))
  expect(burst('192.0.2.1', 1_000)).toBe(1_000)
  expect(admit('192.0.2.1', from('friendly-scanner'))).toBe(true)
  expect(logged.filter((line) => !line.includes('banned'))).toEqual([])
})

test.each(['friendly-scanner', 'SIPVicious', 'sipcli/v1.8', 'VaxSIPUserAgent/3.5', 'sundayddr'])(
  'a scanner meets silence: %s',
  (name) => {
    const { admit, logged, guard } = guarded()
    expect(admit('192.0.2.1', from(name))).toBe(false)
    expect(admit('192.0.2.1', from(name).toString().replace('User-Agent', 'user-agent'))).toBe(
      false,
    )
    // The address that it bears may be a lie: that one is not banned.
    expect(admit('192.0.2.1')).toBe(true)
    expect(logged).toEqual(['a scanner meets silence: 192.0.2.1'])
    expect(guard.bans()).toEqual([])
  },
)

test('a phone, and an answer of a scanned host, is not taken for a scanner', () => {
  const { admit } = guarded()
  for (const name of ['baresip v1.0.0 (x86_64/linux)', 'Yealink SIP-T46S 66.85', 'smap']) {
    expect(admit('192.0.2.1', from(name))).toBe(true)
  }
  const answer = 'SIP/2.0 200 OK\r\nUser-Agent: friendly-scanner\r\n\r\n'
  expect(admit('192.0.2.1', Buffer.from(answer))).toBe(true)
  expect(admit('192.0.2.1', answer)).toBe(true)
})

test('a new connection, an empty packet, counts: floods of them are cut, and a banned source gets none', () => {
  const { guard, admit, time } = guarded()
  const connections = Array.from({ length: 100 }, () => admit('192.0.2.1', ''))
  expect(connections.filter(Boolean)).toHaveLength(20)
  guard.ban('192.0.2.2', 60_000)
  expect(admit('192.0.2.2', '')).toBe(false)
  time.now += 60_001
  expect(admit('192.0.2.2', '')).toBe(true)
})

test('twenty wrong passwords in a minute ban an address for ten minutes', () => {
  const { guard, time, admit } = guarded()
  for (let user = 0; user < 19; user++) guard.authFailed(at('192.0.2.1'), `${user}`)
  expect(admit('192.0.2.1')).toBe(true)
  guard.authFailed(at('192.0.2.1'), '19')
  expect([admit('192.0.2.1'), admit('192.0.2.2')]).toEqual([false, true])
  expect(guard.bans()).toEqual([
    {
      source: '192.0.2.1',
      reason: 'password_guessing',
      dropped: 1,
      since: time.now,
      until: time.now + 600_000,
    },
  ])
  time.now += 599_999
  expect(admit('192.0.2.1')).toBe(false)
  time.now += 1
  expect([admit('192.0.2.1'), guard.bans()]).toEqual([true, []])
})

test('ten wrong passwords for one user lock that user out from that address, until a while has passed', () => {
  const { guard, time, logged } = guarded()
  for (let failure = 0; failure < 9; failure++) guard.authFailed(at('192.0.2.1'), '101')
  expect(guard.isLockedOut(at('192.0.2.1'), '101')).toBe(false)
  guard.authFailed(at('192.0.2.1'), '101')
  guard.authFailed(at('192.0.2.1'), '101')
  expect(guard.isLockedOut(at('192.0.2.1'), '101')).toBe(true)
  expect(guard.isLockedOut(at('192.0.2.2'), '101')).toBe(false)
  expect(guard.isLockedOut(at('192.0.2.1'), '102')).toBe(false)
  expect(logged).toHaveLength(1)
  time.now += 300_000
  expect(guard.isLockedOut(at('192.0.2.1'), '101')).toBe(false)
})

test('the right password clears what was counted against the user', () => {
  const { guard } = guarded()
  for (let failure = 0; failure < 9; failure++) guard.authFailed(at('192.0.2.1'), '101')
  guard.authSucceeded(at('192.0.2.1'), '101')
  guard.authFailed(at('192.0.2.1'), '101')
  expect(guard.isLockedOut(at('192.0.2.1'), '101')).toBe(false)
})

test('a phone that has shown its password is not locked out by others at its address', () => {
  const { guard } = guarded()
  const [phone, other] = [at('192.0.2.1', 'udp', 5_060), at('192.0.2.1', 'udp', 6_060)]
  guard.authSucceeded(phone, '101@acme.example')
  for (let failure = 0; failure < 12; failure++) guard.authFailed(other, '101@acme.example')
  const locked = () => [phone, other].map((source) => guard.isLockedOut(source, '101@acme.example'))
  expect(locked()).toEqual([false, true])
  // It has shown the password of one account.
  for (let failure = 0; failure < 10; failure++) guard.authFailed(other, '102@acme.example')
  expect(guard.isLockedOut(phone, '102@acme.example')).toBe(true)
  // Its further successes give the others no new guesses.
  guard.authSucceeded(phone, '101@acme.example')
  expect(locked()).toEqual([false, true])
})

test('a phone that has shown its password guesses no more often than others', () => {
  const { guard, time } = guarded()
  const phone = at('192.0.2.1')
  guard.authSucceeded(phone, '101@acme.example')
  let guesses = 0
  while (!guard.isLockedOut(phone, '101@acme.example')) {
    guard.authFailed(phone, '101@acme.example')
    guesses += 1
  }
  expect(guesses).toBe(10)
  time.now += 300_000
  expect(guard.isLockedOut(phone, '101@acme.example')).toBe(false)
})

test('successes of one phone do not let another at its address guess for ever', () => {
  const { guard } = guarded()
  const [phone, other] = [at('192.0.2.1', 'udp', 5_060), at('192.0.2.1', 'udp', 6_060)]
  let guesses = 0
  for (let round = 0; round < 30; round++) {
    guard.authSucceeded(phone, '101@acme.example')
    if (guard.isLockedOut(other, '101@acme.example')) continue
    guard.authFailed(other, '101@acme.example')
    guesses += 1
  }
  expect(guesses).toBe(10)
})

test('locks are listed with their end, and lifted by hand', () => {
  const { guard, time } = guarded()
  const since = time.now
  for (let failure = 0; failure < 9; failure++)
    guard.authFailed(at('192.0.2.1'), '101@acme.example')
  expect([guard.locks(), guard.unban('192.0.2.1')]).toEqual([[], false])
  for (let failure = 0; failure < 10; failure++) {
    guard.authFailed(at('192.0.2.1'), '101@acme.example')
    time.now += 1_000
  }
  const lock = { source: '192.0.2.1', user: '101@acme.example' }
  expect(guard.locks()).toEqual([{ ...lock, since: since + 9_000, until: since + 300_000 }])
  expect(guard.unban('192.0.2.1')).toBe(true)
  expect([guard.locks(), guard.isLockedOut(at('192.0.2.1'), '101@acme.example')]).toEqual([
    [],
    false,
  ])
})

test('a ban is lifted by hand, with the count that led to it; unknown calls ban as well', () => {
  const { guard, admit } = guarded()
  for (let call = 0; call < 30; call++) guard.unknownSource(at('192.0.2.1', 'tcp'))
  expect(guard.bans()[0]?.reason).toBe('unknown_calls')
  expect([guard.unban('192.0.2.1'), guard.unban('192.0.2.1')]).toEqual([true, false])
  guard.unknownSource(at('192.0.2.1', 'tcp'))
  expect(admit('192.0.2.1')).toBe(true)
  guard.ban('192.0.2.1', 1_000)
  expect(admit('192.0.2.1')).toBe(false)
})

test('an IPv6 network of 64 bits is one source', () => {
  const { guard, admit, burst } = guarded()
  for (let host = 0; host < 30; host++) guard.unknownSource(at(`2001:db8:1:2::${host}`, 'tcp'))
  expect(guard.bans().map(({ source }) => source)).toEqual(['2001:db8:1:2::/64'])
  expect(admit('2001:db8:1:2:aaaa:bbbb:cccc:dddd')).toBe(false)
  expect(admit('2001:db8:1:3::1')).toBe(true)
  expect(guard.unban('2001:db8:1:2::/64')).toBe(true)
  expect(burst('2001:db8::1', 30) + burst('2001:db8::2', 30)).toBe(20)
})

test('a flood from a hundred thousand addresses takes bounded memory, and a busy flooder keeps its limit', () => {
  const { guard, time, admit, burst } = guarded()
  burst('192.0.2.1', 1_000)
  for (let index = 0; index < 100_000; index++) {
    admit(`10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`)
    if (index % 50 === 0) {
      time.now += 1
      admit('192.0.2.1')
    }
  }
  expect(guard.telemetry()['guard_sources']).toBe(100)
  for (let index = 0; index < 20_000; index++)
    guard.ban(`10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`, 1_000)
  expect(guard.bans()).toHaveLength(10_000)
})

test('requests that another server took are judged alike: floods, scanners, bans', () => {
  const { guard, exempt } = guarded()
  const ask = (address: string, userAgent?: string) =>
    guard.admitRequest(at(address), 'OPTIONS', userAgent)
  const flood = Array.from({ length: 50 }, () => ask('192.0.2.1', 'phone'))
  expect(flood.filter(Boolean)).toHaveLength(20)
  expect(ask('192.0.2.2', 'friendly-scanner')).toBe(false)
  expect(ask('192.0.2.2')).toBe(true)
  guard.ban('192.0.2.3', 60_000)
  expect(ask('192.0.2.3', 'phone')).toBe(false)
  exempt.add('192.0.2.3')
  expect(ask('192.0.2.3', 'phone')).toBe(true)
  expect(guard.telemetry()).toMatchObject({
    guard_dropped_flood_total: 30,
    guard_dropped_scanner_total: 1,
    guard_dropped_banned_total: 1,
  })
})
