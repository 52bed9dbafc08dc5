/**
 * The source of a datagram can be forged: what that costs the forger, and what it does not cost
 * others.
 */
import { expect, test } from 'vitest'
import { FloodGuard } from '../../../engine/flood-guard/flood-guard.ts'

/** As an instance tells it, by which no request has come from it yet. */
const instanceAddress = '192.0.2.77'
const phone = { protocol: 'udp', address: '192.0.2.1', port: 5_062 }
const invite = Buffer.from('INVITE sip:1900@h SIP/2.0\r\nUser-Agent: x\r\n\r\n')
const register = Buffer.from('REGISTER sip:h SIP/2.0\r\nUser-Agent: x\r\n\r\n')
const options = Buffer.from('OPTIONS sip:h SIP/2.0\r\nUser-Agent: x\r\n\r\n')
const scanner = Buffer.from('OPTIONS sip:h SIP/2.0\r\nUser-Agent: friendly-scanner\r\n\r\n')

function guarded() {
  const time = { now: 1_000_000_000_000 }
  const logged: string[] = []
  const exempt = new Set<string>()
  const guard = new FloodGuard({
    now: () => time.now,
    isExempt: (address, port) => exempt.has(`${address}:${port}`),
    isInstance: (address) => address === instanceAddress,
    log: (_level, message) => void logged.push(message),
    flood: { packetsPerSecond: 10, burst: 20, maxSources: 100 },
    strangers: { packetsPerSecond: 100, burst: 200 },
  })
  /** So many calls from an unknown source, in the name of this one. */
  const forge = (source: typeof phone, count = 100): void => {
    for (let call = 0; call < count; call++) guard.unknownSource(source)
  }
  /** How many of so many packets are heard. */
  const heard = (source: typeof phone, packet: Buffer | string, count: number): number =>
    Array.from({ length: count }, () => guard.admit(source, packet)).filter(Boolean).length
  return { guard, time, logged, exempt, forge, heard }
}

/** Addresses as a forger makes them up. */
const madeUp = (index: number) => ({
  protocol: 'udp',
  address: `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`,
  port: 5_060,
})

test('calls with a forged source ban no phone that has registered from there', () => {
  const { guard, forge } = guarded()
  guard.authSucceeded(phone, '101')
  forge({ ...phone, port: 40_000 })
  forge(phone)
  expect(guard.admit(phone, invite)).toBe(true)
  // The forger itself, at another port of that address, calls no more.
  expect(guard.admit({ ...phone, port: 40_000 }, invite)).toBe(false)
})

test('calls with a forged source keep no phone from its first registration', () => {
  const { guard, forge } = guarded()
  forge(phone)
  expect([guard.admit(phone, invite), guard.admit(phone, register)]).toEqual([false, true])
  guard.authSucceeded(phone, '101')
  expect(guard.admit(phone, invite)).toBe(true)
})

test('calls by a connection, whose source is no forgery, do ban it', () => {
  const { guard, forge } = guarded()
  const connected = { ...phone, protocol: 'tcp' }
  forge(connected, 30)
  expect([guard.admit(connected, ''), guard.admit(connected, invite)]).toEqual([false, false])
  expect([guard.admit(phone, options), guard.admit(phone, register)]).toEqual([false, false])
})

test("a flood with a forged source takes nothing from a phone's packets, nor from its connections", () => {
  const { guard, heard } = guarded()
  guard.authSucceeded(phone, '101')
  expect(heard({ ...phone, port: 40_000 }, options, 1_000)).toBe(20)
  expect(heard(phone, options, 20)).toBe(20)
  expect(heard({ ...phone, protocol: 'tcp', port: 40_001 }, options, 20)).toBe(20)
})

test('a flood from everywhere leaves proven phones, carriers and connections their share', () => {
  const { guard, exempt, heard } = guarded()
  exempt.add('198.51.100.1:5060')
  guard.authSucceeded(phone, '101')
  const admitted = Array.from({ length: 100_000 }, (_, index) =>
    guard.admit(madeUp(index), options),
  ).filter(Boolean).length
  expect(admitted).toBe(200)
  expect(heard(phone, invite, 20)).toBe(20)
  expect(heard({ ...phone, address: '198.51.100.1', port: 5_060 }, invite, 1_000)).toBe(1_000)
  expect(heard({ ...phone, address: '203.0.113.7', protocol: 'tcp' }, invite, 20)).toBe(20)
  expect(guard.telemetry()).toMatchObject({
    guard_sources: 101,
    guard_proven_sources: 1,
    guard_dropped_strangers_total: 99_800,
  })
})

test('a flood of forged sources evicts no proof, no ban of an operator and no ban of a guesser', () => {
  const { guard, forge } = guarded()
  guard.authSucceeded(phone, '101')
  guard.ban('203.0.113.5', 3_600_000)
  const guesser = { ...phone, address: '203.0.113.6' }
  for (let guess = 0; guess < 20; guess++) guard.authFailed(guesser, `${guess}`)
  for (let index = 0; index < 12_000; index++) forge(madeUp(index), 30)
  expect(guard.admit(phone, invite)).toBe(true)
  expect(guard.admit({ ...phone, address: '203.0.113.5' }, register)).toBe(false)
  expect(guard.admit(guesser, register)).toBe(false)
})

test('forged sources, each a scanner or banned, make a bounded number of log lines', () => {
  const { guard, time, logged, forge } = guarded()
  for (let index = 0; index < 5_000; index++) {
    guard.admit(madeUp(index), scanner)
    forge(madeUp(index), 30)
    time.now += 13
  }
  // One minute, begun again once.
  expect(logged.length).toBeLessThan(50)
  expect(logged).toContain('the guard has suppressed log lines')
})

test('a guesser behind a shared address is banned; the phones that had registered there are not', () => {
  const { guard } = guarded()
  guard.authSucceeded(phone, '101')
  const guesser = { ...phone, port: 40_000 }
  for (let guess = 0; guess < 20; guess++) guard.authFailed(guesser, `2${guess}`)
  expect(guard.admit(phone, invite)).toBe(true)
  expect([guard.admit(guesser, invite), guard.admit(guesser, options)]).toEqual([false, false])
  // A phone that gets another port from its NAT may say who it is; others are not even checked.
  const moved = { ...phone, port: 40_001 }
  expect(guard.admit(moved, register)).toBe(true)
  expect([guard.isLockedOut(moved, '101'), guard.isLockedOut(guesser, '299')]).toEqual([
    false,
    true,
  ])
})

test('a proof ends a while after the longest registration', () => {
  const { guard, time, forge } = guarded()
  guard.authSucceeded(phone, '101')
  time.now += 7_200_000
  forge(phone)
  expect([guard.admit(phone, invite), guard.isProven(phone.address)]).toEqual([true, true])
  time.now += 600_000
  forge(phone)
  expect([guard.admit(phone, invite), guard.isProven(phone.address)]).toEqual([false, false])
})

test('proofs are bounded: an office has four thousand ports, and the oldest gives way', () => {
  const { guard, forge } = guarded()
  for (let port = 1; port <= 4_097; port++) guard.authSucceeded({ ...phone, port }, `${port}`)
  forge({ ...phone, port: 1 }, 30)
  expect(guard.admit({ ...phone, port: 1 }, invite)).toBe(false)
  expect(guard.admit({ ...phone, port: 4_097 }, invite)).toBe(true)
})

test('calls in the name of a carrier or an instance ban no source, and are told to no other instance', () => {
  const told: unknown[] = []
  const { guard, exempt, forge } = guarded()
  guard.onBan((ban) => void told.push(ban))
  exempt.add(`${phone.address}:${phone.port}`)
  forge(phone)
  forge({ ...phone, address: instanceAddress })
  expect([guard.bans(), told]).toEqual([[], []])
})
