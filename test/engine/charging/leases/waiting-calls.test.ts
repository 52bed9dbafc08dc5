import { connect, createServer, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import {
  BUSY_WAIT_MS,
  LEASE_WAIT_MS,
  WaitingCalls,
} from '../../../../engine/charging/leases/waiting-calls.ts'
import { UNANSWERED_WAIT_MS } from '../../../../schema/answer-wait.ts'
import { ManualTime } from '../../../support/manual-time.ts'
import { turnOfEventLoop } from '../../../support/waiting.ts'

const schedule = (work: () => void, delayMs: number): (() => void) => {
  const timer = setTimeout(work, delayMs)
  return () => clearTimeout(timer)
}

/** Two ends of a connection on this machine. */
async function connection() {
  const server = createServer()
  const accepted = new Promise<Socket>((resolve) => server.once('connection', resolve))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const near = connect(port, '127.0.0.1')
  const far = await accepted
  onTestFinished(() => {
    near.destroy()
    far.destroy()
    server.close()
  })
  return { near, far }
}

function standStill(ms: number): void {
  const until = performance.now() + ms
  while (performance.now() < until);
}

test('an answer that came while this process stood still is read before a call is given up', async () => {
  const waiting = new WaitingCalls({ schedule, now: () => performance.now() })
  const { near, far } = await connection()
  let isRead = false
  near.on('data', () => {
    isRead = true
    waiting.tell(() => 100n)
  })
  const told = waiting.add(1, 100n)
  // Its last part begins; then the answer comes, and its end is over before it can be read.
  await new Promise((resolve) => setTimeout(resolve, UNANSWERED_WAIT_MS * 0.96))
  far.write('so much')
  standStill(LEASE_WAIT_MS)
  expect(await told).toBe(true)
  expect(isRead).toBe(true)
})

function virtual() {
  const time = new ManualTime(0)
  const { now, schedule: later } = time
  const waiting = new WaitingCalls({ schedule: later, now })
  let answer: boolean | undefined
  void waiting.add(1, 100n).then((told) => (answer = told))
  return { time, waiting, answer: () => answer }
}

test('a call waits for 500 ms for a database that does not answer, and hears that nothing is known', async () => {
  const { time, answer } = virtual()
  time.advance(UNANSWERED_WAIT_MS - 1)
  await turnOfEventLoop()
  expect(answer()).toBeUndefined()
  time.advance(1)
  await turnOfEventLoop()
  expect(answer()).toBe(false)
})

test('a call waits for two seconds for a database that answers other questions', async () => {
  const { time, waiting, answer } = virtual()
  time.advance(UNANSWERED_WAIT_MS / 2)
  waiting.serverIsThere()
  time.advance(BUSY_WAIT_MS - UNANSWERED_WAIT_MS / 2 - 1)
  await turnOfEventLoop()
  expect(answer()).toBeUndefined()
  time.advance(1)
  await turnOfEventLoop()
  expect(answer()).toBe(false)
})

test('a call that hears that others have the money hears after 100 ms that there is none', async () => {
  const { time, waiting, answer } = virtual()
  waiting.answered(1)
  time.advance(LEASE_WAIT_MS - 1)
  await turnOfEventLoop()
  expect(answer()).toBeUndefined()
  time.advance(1)
  await turnOfEventLoop()
  expect(answer()).toBe(true)
})

test('a call that hears so later waits no longer than until it hears it', async () => {
  const { time, waiting, answer } = virtual()
  time.advance(3 * LEASE_WAIT_MS)
  waiting.answered(1)
  time.advance(LEASE_WAIT_MS / 2)
  await turnOfEventLoop()
  expect(answer()).toBe(true)
})

test('a process that stood still waits for the database when it goes on, and hears it', async () => {
  const { time, waiting, answer } = virtual()
  time.stall(2_500)
  await turnOfEventLoop()
  time.advance(LEASE_WAIT_MS)
  await turnOfEventLoop()
  expect(answer()).toBeUndefined()
  waiting.tell(() => 100n)
  await turnOfEventLoop()
  expect(answer()).toBe(true)
})

test('a process that stands still again and again keeps no call waiting for longer than two seconds', async () => {
  const { time, answer } = virtual()
  for (let waitedMs = 0; waitedMs < 1_500; waitedMs += 300) time.stall(300)
  await turnOfEventLoop()
  expect(answer()).toBeUndefined()
  time.stall(300)
  await turnOfEventLoop()
  expect(answer()).toBe(false)
})
