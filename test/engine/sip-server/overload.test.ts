/** Which calls are refused when the process cannot keep up; the measurement of it. */
import { expect, onTestFinished, test, vi } from 'vitest'
import { parseMessage } from '../../../schema/sip/parse.ts'
import type { SipMessage } from '../../../schema/sip/message.ts'
import { Overload } from '../../../engine/sip-server/overload.ts'
import { Backlog } from '../../../engine/sip-server/backlog.ts'
import type { Flow } from '../../../engine/sip-server/flow.ts'
import { createSipServer } from '../../../engine/sip-server/index.ts'
import { requestOf, udp } from '../../support/sip-core.ts'
import { SipPeer } from '../../support/sip-peer.ts'
import { eventually } from '../../support/waiting.ts'

/** A socket with one reader: what arrives waits its turn, and costs the reader time. */
class BusyServer {
  now = 0
  readonly logged: { readonly level: string; readonly fields: unknown }[] = []
  readonly overload: Overload
  /** Milliseconds that each call waited. */
  readonly waits: number[] = []
  served = 0
  refused = 0
  readonly #queue: {
    readonly at: number
    readonly invite?: SipMessage | undefined
    readonly own?: string
  }[] = []
  #measure: () => void = () => undefined
  #everyMs = 0
  /** The part of the time that goes into something else than calls. */
  otherWork = 0
  /** How often it was measured. */
  measurements = 0
  #calls = 0
  #owed = 0
  #measuredAt = 0
  #busyMs = 0
  #askedAt = 0

  constructor(
    isUrgent: (uri: string) => boolean = () => false,
    isStranger: (source: Flow) => boolean = () => false,
  ) {
    this.overload = new Overload({
      now: () => this.now,
      token: () => 'token',
      send: (own) => void this.#queue.push({ at: this.now, own }),
      isUrgent,
      isStranger,
      utilization: () => {
        const utilization = this.#busyMs / Math.max(1, this.now - this.#askedAt)
        this.#busyMs = 0
        this.#askedAt = this.now
        return Math.min(1, utilization + this.otherWork)
      },
      repeat: (work, everyMs) => {
        this.#measure = work
        this.#everyMs = everyMs
        this.#measuredAt = this.now
        return () => undefined
      },
      log: (level, _message, fields) => void this.logged.push({ level, fields }),
    })
    this.overload.start([udp])
  }

  /** A call costs 1 ms, a refusal 0.02 ms: a thousand calls a second are all that it can serve. */
  run(seconds: number, callsPerSecond: number): void {
    const end = this.now + seconds * 1_000
    while (this.now < end) {
      this.now += 1
      const isStalled = this.stalls(this.now)
      if (!isStalled && this.now - this.#measuredAt >= this.#everyMs) {
        this.#measuredAt = this.now
        this.measurements += 1
        this.#measure()
      }
      for (this.#owed += callsPerSecond / 1_000; this.#owed >= 1; this.#owed -= 1)
        this.#queue.push({ at: this.now, invite: calls[++this.#calls % calls.length] })
      // Who is interrupted at work counts as busy for as long.
      if (isStalled) this.#busyMs += this.#queue.length > 0 ? 1 : 0
      else this.#work(1)
    }
  }

  /** Other processes want the machine: this one stands still, for a while and again and again. */
  stalls: (now: number) => boolean = () => false

  forget(): void {
    this.served = this.refused = 0
    this.waits.length = 0
  }

  #budget = 0

  #work(ms: number): void {
    this.#budget = Math.min(this.#budget + ms, 1)
    const before = this.#budget
    this.#drain()
    this.#busyMs += this.#queue.length > 0 ? 1 : Math.min(1, before - this.#budget)
  }

  #drain(): void {
    while (this.#budget > 0) {
      const next = this.#queue.shift()
      if (next === undefined) return
      if (next.own !== undefined) this.overload.takes(Buffer.from(next.own, 'latin1'), udp)
      else if (next.invite !== undefined) this.#judge(next.invite, next.at)
    }
  }

  #judge(invite: SipMessage, at: number): void {
    this.waits.push(this.now - at)
    const isRefused = this.overload.refuses(invite, flow)
    this.#budget -= isRefused ? 0.02 : 1
    if (isRefused) this.refused += 1
    else this.served += 1
  }
}

/** One whose first seconds are over. */
function warmServer(...given: ConstructorParameters<typeof BusyServer>): BusyServer {
  const server = new BusyServer(...given)
  server.run(5, 0)
  return server
}

/** Where a call comes from. */
const flow: Flow = { listener: udp, address: '203.0.113.7', port: 5_060, connectionId: 0 }

function call(number: number, options: Parameters<typeof requestOf>[1] = {}): SipMessage {
  const parsed = parseMessage(
    requestOf('INVITE', { callId: `1-${number}@203.0.113.7`, ...options }),
  )
  if (parsed.kind !== 'request') throw new Error('unreadable')
  return parsed
}

/** Parsed once: only their Call-IDs count. */
const calls = Array.from({ length: 2_000 }, (_, number) => call(number))

/** A server in the middle of twice the load that it can carry. */
function overloaded(
  isUrgent?: (uri: string) => boolean,
  isStranger?: (source: Flow) => boolean,
): BusyServer {
  const server = warmServer(isUrgent, isStranger)
  server.run(20, 2_000)
  return server
}

test.each([1.1, 1.5, 2, 4, 10])(
  'at %d times what it can carry it serves nearly as much as before, and soon',
  (load) => {
    const server = warmServer()
    server.run(15, load * 1_000)
    server.forget()
    server.run(20, load * 1_000)
    expect(server.served).toBeGreaterThan(0.8 * 20_000)
    // T1: no sender repeats what has waited less.
    const waits = server.waits.toSorted((a, b) => a - b)
    expect(waits[Math.floor(0.99 * waits.length)]).toBeLessThan(500)
  },
)

test('when the load goes, every call is let in again within seconds', () => {
  const server = overloaded()
  server.run(10, 500)
  server.forget()
  server.run(10, 500)
  expect(server.refused).toBe(0)
  expect(server.overload.share).toBe(1)
})

test('without new calls it measures once a second, and from the first one on ten times', () => {
  const server = warmServer()
  const measuredIn = (seconds: number, callsPerSecond: number): number => {
    server.measurements = 0
    server.run(seconds, callsPerSecond)
    return server.measurements
  }
  expect(measuredIn(10, 0)).toBe(10)
  expect(measuredIn(10, 2)).toBeGreaterThan(90)
  measuredIn(3, 0)
  expect(measuredIn(10, 0)).toBe(10)
})

test('a loop that is busy without new calls is measured as often as with them', () => {
  const server = warmServer()
  server.otherWork = 0.6
  server.run(2, 0)
  server.measurements = 0
  server.run(10, 0)
  expect(server.measurements).toBeGreaterThan(90)
})

test('a flood that ends a rest is refused as soon as one that follows calls', () => {
  const firstRefusalAt = (callsBefore: number): number => {
    const server = warmServer()
    server.run(10, callsBefore)
    const begunAt = server.now
    while (server.refused === 0) server.run(0.01, 4_000)
    return server.now - begunAt
  }
  expect(firstRefusalAt(0)).toBeLessThanOrEqual(firstRefusalAt(20) + 100)
})

test('every copy of an INVITE meets the same decision, the next try another one', () => {
  const { overload } = overloaded()
  const decisions = Array.from({ length: 400 }, (_, n) => overload.refuses(call(n), flow))
  expect(Array.from({ length: 400 }, (_, n) => overload.refuses(call(n), flow))).toEqual(decisions)
  const again = Array.from({ length: 400 }, (_, n) => overload.refuses(call(n, { cseq: 2 }), flow))
  const saved = decisions.filter((isRefused, n) => isRefused && again[n] === false)
  expect(saved.length).toBeGreaterThan(20)
})

test('what belongs to a dialog is never refused', () => {
  const { overload } = overloaded()
  const refused = Array.from({ length: 400 }, (_, n) =>
    overload.refuses(call(n, { toTag: 't' }), flow),
  )
  expect(refused).not.toContain(true)
})

test('under overload strangers get nothing, so that known sources keep their share', () => {
  const stranger = { ...flow, address: '198.51.100.9' }
  const { overload } = overloaded(
    (uri) => uri.startsWith('sip:112@'),
    ({ address }) => address === stranger.address,
  )
  const refused = (source: Flow): boolean[] =>
    Array.from({ length: 400 }, (_, n) => overload.refuses(call(n), source))
  expect(new Set(refused(stranger))).toEqual(new Set([true]))
  expect(refused(flow)).toContain(false)
  expect(overload.refuses(call(1, { uri: 'sip:112@198.51.100.10' }), stranger)).toBe(false)
})

function open() {
  const clock = { now: 1_000 }
  const backlog = new Backlog(() => clock.now, 'unguessable')
  return { clock, backlog }
}

const bytes = (text: string): Buffer => Buffer.from(text, 'latin1')

test('a socket that cannot reach itself is not taken for a slow one', () => {
  const { clock, backlog } = open()
  for (let i = 0; i < 50; i++) {
    backlog.next()
    clock.now += 100
  }
  expect(backlog.delayMs).toBe(0)
})

test('no other sender can speak for it, and nothing else is kept from the server', () => {
  const { clock, backlog } = open()
  const sent = backlog.next()
  clock.now += 10
  expect(backlog.takes(bytes('INVITE sip:a@b SIP/2.0\r\n'))).toBe(false)
  expect(backlog.takes(bytes('\u0001guessed-1'))).toBe(false)
  expect(backlog.takes(bytes(sent))).toBe(true)
})

test('what is under way is bounded', () => {
  const { clock, backlog } = open()
  const texts = Array.from({ length: 1_000 }, () => {
    clock.now += 100
    return backlog.next()
  })
  // Long forgotten: it is still ours, and says nothing any more.
  expect(backlog.takes(bytes(texts[0] ?? ''))).toBe(true)
  expect(backlog.delayMs).toBe(0)
})

test.each(['127.0.0.1', '0.0.0.0', '::1'])(
  'a server on %s measures its own delay',
  async (host) => {
    const seen: string[] = []
    const server = createSipServer({
      listen: [{ protocol: 'udp', host, port: 0 }],
      secret: 'cymru',
      admit: (_source, packet) => seen.push(packet.toString()) > 0,
    })
    await server.start()
    onTestFinished(() => server.stop())
    // Never exactly none: what was heard has been under way.
    await eventually(() => expect(server.load.lagMs).toBeGreaterThan(0))
    expect(server.load).toMatchObject({ share: 1, refused: 0 })
    expect(seen).toEqual([])
  },
)

test('as long as the process cannot keep up, new calls are refused, but not emergencies', async () => {
  const clock = { now: 0 }
  const isBusy = vi
    .spyOn(performance, 'eventLoopUtilization')
    .mockReturnValue({ utilization: 1, active: 1, idle: 0 })
  const work = new Set<() => void>()
  const server = createSipServer(
    {
      listen: [{ protocol: 'udp', host: '127.0.0.1', port: 0 }],
      secret: 'cymru',
      now: () => clock.now,
      isUrgent: (uri) => uri.startsWith('sip:112@'),
    },
    {
      schedule: () => () => undefined,
      repeat: (measure) => {
        work.add(measure)
        return () => void work.delete(measure)
      },
    },
  )
  await server.start()
  onTestFinished(() => server.stop())
  onTestFinished(() => isBusy.mockRestore())
  for (let turn = 0; turn < 100; turn += 1) {
    clock.now += 1_000
    for (const measure of [...work]) measure()
  }
  const [listener] = server.listeners
  if (listener === undefined) throw new Error('no listener')
  const peer = await SipPeer.open(listener)
  onTestFinished(() => peer.close())
  // No application takes a call that is let in: such calls hear of 5 seconds.
  const refusals = async (uri: string): Promise<number> => {
    for (let call = 0; call < 40; call += 1) peer.request('INVITE', peer.leg(uri))
    let refused = 0
    for (let call = 0; call < 40; call += 1)
      if ((await peer.next(503)).get('Retry-After') === '1') refused += 1
    return refused
  }
  expect(await refusals('sip:112@127.0.0.1')).toBe(0)
  expect(await refusals('urn:service:sos.police')).toBe(0)
  const refused = await refusals('sip:18005551212@127.0.0.1')
  expect(refused).toBeGreaterThan(0)
  expect(server.load.refused).toBe(refused)
})
