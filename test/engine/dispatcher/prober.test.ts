import { expect, test } from 'vitest'
import type { Every } from '../../../schema/clock.ts'
import { Rounds } from '../../../schema/rounds.ts'
import { Prober } from '../../../engine/dispatcher/prober.ts'
import { probeDefaults, SimulatedNodes, uriOf } from './samples.ts'
import { VirtualClock } from './virtual-clock.ts'
import {
  type ProbeResult,
  type SendProbe,
  type ProbeVerdict,
} from '../../../engine/dispatcher/probe-loop.ts'

const target = (id: number) => ({ id, destination: uriOf(id), settings: probeDefaults })

interface Given {
  readonly clock?: VirtualClock
  readonly every?: Every
}

function start(
  ids: readonly number[],
  sendProbe?: SendProbe,
  { clock = new VirtualClock(), every }: Given = {},
) {
  const nodes = new SimulatedNodes(clock)
  const verdicts: (ProbeVerdict & { readonly id: number })[] = []
  const prober = new Prober({
    now: clock.now,
    schedule: clock.schedule,
    every,
    sendProbe: sendProbe ?? nodes.sendProbe,
    onVerdict: (id, verdict) => void verdicts.push({ id, ...verdict }),
  })
  prober.watch(ids.map(target))
  prober.start()
  return { clock, nodes, verdicts, prober }
}

test('a healthy node gets one OPTIONS every 500 ms, without drift', async () => {
  const { clock, nodes } = start([1])
  await clock.advance(60_000)
  const sentAt = nodes.sentTo(uriOf(1))
  expect(sentAt).toHaveLength(120)
  const [first = 0] = sentAt
  expect(sentAt.every((at, index) => Math.abs(at - first - index * 500) < 1e-6)).toBe(true)
})

test('a silent probe is repeated once, at half of the timeout, and given up at the timeout', async () => {
  const { clock, nodes, verdicts } = start([1])
  nodes.dead.add(uriOf(1))
  await clock.advance(800)
  const [first = 0, second = 0, ...more] = nodes.sentTo(uriOf(1))
  expect(second - first).toBe(200)
  expect(more).toHaveLength(0)
  expect(verdicts[0]).toMatchObject({ isUp: false, status: 0, at: first + 400 })
})

test('one lost datagram is no failure: the answer to the repeat counts', async () => {
  const { clock, nodes, verdicts } = start([1])
  nodes.isLost = (_, count) => count === 0
  await clock.advance(900)
  expect(verdicts[0]).toMatchObject({ isUp: true, status: 200, latencyMs: nodes.roundTripMs })
})

test('a status outside of ok_codes is an answer, but no success', async () => {
  const { clock, nodes, verdicts } = start([1])
  nodes.statuses.set(uriOf(1), 503)
  await clock.advance(500)
  expect(verdicts[0]).toMatchObject({ isUp: false, status: 503 })
})

test('a transport error is a verdict at once', async () => {
  const { clock, verdicts } = start([1], (_destination, _timeoutMs, done) =>
    done({ kind: 'transport-error', reason: 'ECONNREFUSED' }),
  )
  await clock.advance(500)
  expect(verdicts).toMatchObject([{ isUp: false, status: 0, reason: 'ECONNREFUSED' }])
})

test('while our SIP server is away a probe is no verdict, and the next one comes at its time', async () => {
  let isAway = true
  const { clock, verdicts } = start([1], (_destination, _timeoutMs, done) =>
    done(isAway ? { kind: 'unsent' } : { kind: 'answered', status: 200, reason: 'OK' }),
  )
  await clock.advance(5_000)
  expect(verdicts).toEqual([])
  isAway = false
  await clock.advance(500)
  expect(verdicts).toMatchObject([{ isUp: true }])
})

test('the answer of an earlier probe cannot decide a later one', async () => {
  const resolvers: ((result: ProbeResult) => void)[] = []
  const { clock, verdicts } = start(
    [1],
    (_destination, _timeoutMs, done) => void resolvers.push(done),
  )
  await clock.advance(950)
  expect(verdicts).toHaveLength(1)
  resolvers[0]?.({ kind: 'answered', status: 200, reason: 'OK' })
  await clock.advance(0)
  expect(verdicts).toHaveLength(1)
})

test('probes of many nodes are spread over the interval', async () => {
  const ids = Array.from({ length: 50 }, (_, index) => index + 1)
  const { clock, nodes } = start(ids)
  await clock.advance(500)
  const perSlice = Array<number>(10).fill(0)
  for (const { at } of nodes.sent)
    perSlice[Math.ceil(at / 50) - 1] = (perSlice[Math.ceil(at / 50) - 1] ?? 0) + 1
  expect(nodes.sent).toHaveLength(50)
  for (const count of perSlice) expect(Math.abs(count - 5)).toBeLessThanOrEqual(2)
})

test('the first nodes are probed in the rounds of the process, the others spread as well', async () => {
  const clock = new VirtualClock()
  const { every } = new Rounds({ steadyNow: clock.now, schedule: clock.schedule })
  const roundsAt: number[] = []
  every(500, () => roundsAt.push(clock.now()))
  await clock.advance(123)
  const ids = Array.from({ length: 50 }, (_, index) => index + 1)
  const { nodes } = start(ids, undefined, { clock, every })
  await clock.advance(10_000)
  for (const id of [1, 2, 3]) expect(nodes.sentTo(uriOf(id))).toEqual(roundsAt)
  const phases = new Map<number, number>()
  for (const id of ids.slice(3)) {
    const [first = 0, ...more] = nodes.sentTo(uriOf(id))
    expect(more.every((at, index) => at === first + (index + 1) * 500)).toBe(true)
    phases.set(first % 500, (phases.get(first % 500) ?? 0) + 1)
  }
  expect(phases.size).toBe(10)
  for (const count of phases.values()) expect(count).toBeLessThanOrEqual(6)
})

test('a few nodes wake the process together', async () => {
  const { clock, nodes } = start([1, 2, 3])
  await clock.advance(60_000)
  expect(nodes.sent).toHaveLength(3 * 120)
  expect(new Set(nodes.sent.map(({ at }) => at)).size).toBe(120)
})

test('an extra probe neither overlaps a due one nor leaves a longer gap', async () => {
  const { clock, nodes, verdicts, prober } = start([1])
  nodes.dead.add(uriOf(1))
  for (let step = 0; step < 200; step += 1) {
    await clock.advance(37)
    prober.probeNow(1)
  }
  const startedAt = verdicts.map((verdict) => verdict.at - 400)
  for (const [index, at] of startedAt.slice(1).entries()) {
    const gap = at - (startedAt[index] ?? 0)
    expect(gap).toBeGreaterThanOrEqual(400)
    expect(gap).toBeLessThanOrEqual(500)
  }
})

test('after a stall of the process an answer that has arrived still counts', async () => {
  const { clock, nodes, verdicts } = start([1])
  while (nodes.sent.length === 0) await clock.advance(1)
  expect(verdicts).toHaveLength(0)
  clock.stall(700)
  await clock.advance(0)
  expect(verdicts).toHaveLength(0)
  await clock.advance(25)
  expect(verdicts.every((verdict) => verdict.isUp)).toBe(true)
  expect(verdicts.length).toBeGreaterThan(0)
})

test('behind what waits to be read an answer has more time, and no longer than that', async () => {
  const clock = new VirtualClock()
  const verdicts: ProbeVerdict[] = []
  const answers = { afterMs: 900 }
  const sendProbe: SendProbe = (_destination, _timeoutMs, done) =>
    void clock.schedule(
      () => done({ kind: 'answered', status: 200, reason: 'OK' }),
      answers.afterMs,
    )
  const prober = new Prober({
    now: clock.now,
    schedule: clock.schedule,
    sendProbe,
    onVerdict: (_, verdict) => void verdicts.push(verdict),
    lagMs: () => 800,
  })
  prober.watch([target(1)])
  prober.start()
  await clock.advance(5_000)
  expect(verdicts.length).toBeGreaterThan(3)
  expect(verdicts.every(({ isUp }) => isUp)).toBe(true)
  verdicts.length = 0
  answers.afterMs = 60_000
  await clock.advance(5_000)
  expect(verdicts.length).toBeGreaterThan(3)
  expect(verdicts.slice(1).every(({ isUp }) => !isUp)).toBe(true)
})

test('a target that stays keeps its slot; one that left is probed no more', async () => {
  const { clock, nodes, prober } = start([1, 2])
  await clock.advance(2_000)
  prober.watch([target(1), target(3)])
  const [first = 0] = nodes.sentTo(uriOf(1))
  const before = nodes.sentTo(uriOf(2)).length
  await clock.advance(2_000)
  expect(
    nodes.sentTo(uriOf(1)).every((at, index) => Math.abs(at - first - index * 500) < 1e-6),
  ).toBe(true)
  expect(nodes.sentTo(uriOf(2))).toHaveLength(before)
  expect(nodes.sentTo(uriOf(3)).length).toBeGreaterThanOrEqual(4)
})

test('stop leaves no timer behind but those of the network', async () => {
  const { clock, prober } = start([1, 2, 3], (_destination, _timeoutMs, done) =>
    done({ kind: 'silence' }),
  )
  await clock.advance(700)
  prober.stop()
  expect(clock.pending).toBe(0)
})
