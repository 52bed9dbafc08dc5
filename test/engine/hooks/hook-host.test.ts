/** The host of hooks in virtual time, with threads that the test plays. */
import { expect, onTestFinished, test } from 'vitest'
import { HookFileError, HookHost } from '../../../engine/hooks/hook-host.ts'
import type { HookThreadPort, ThreadListener } from '../../../engine/hooks/hook-thread.ts'
import type { HostMessage, ThreadMessage } from '../../../engine/hooks/thread-messages.ts'
import type {
  HookCall,
  HookEndedCall,
  HookFallback,
  HookName,
} from '../../../schema/contracts/hooks.ts'
import { ManualTime } from '../../support/manual-time.ts'

const file = '/srv/hooks.ts'
const call = { to: '4930' } as HookCall
const ended = { to: '4930' } as HookEndedCall

class PlayedThread implements HookThreadPort {
  readonly received: HostMessage[] = []
  isTerminated = false
  /** It does not end when it is ended. */
  isStuck = false
  readonly #listener: ThreadListener

  constructor(listener: ThreadListener) {
    this.#listener = listener
  }

  post(message: HostMessage): void {
    this.received.push(message)
  }

  terminate(): Promise<unknown> {
    this.isTerminated = true
    return this.isStuck ? new Promise(() => undefined) : Promise.resolve()
  }

  send(message: ThreadMessage): void {
    this.#listener.onMessage(message)
  }

  load(hooks: readonly HookName[] = ['onInvite', 'onEnd'], files = [file]): void {
    this.send({ type: 'loaded', hooks, hasApplication: false, files, warnings: [] })
  }

  fail(message: string): void {
    this.send({ type: 'broken', problem: { message, file, line: 3 }, files: [file] })
  }

  end(why: string): void {
    this.#listener.onEnd(why)
  }

  /** Answers the oldest question that has no answer. */
  answer(answer: unknown): void {
    this.send({ type: 'answer', id: this.takeQuestion(), answer, micros: 20 })
  }

  throw(message: string): void {
    const problem = { message, file, line: 7 }
    this.send({ type: 'failed', id: this.takeQuestion(), problem, micros: 10 })
  }

  takeQuestion(): number {
    const asked = this.received.find(({ type }) => type === 'ask')
    if (asked?.type !== 'ask') throw new Error('nothing was asked')
    this.received.splice(this.received.indexOf(asked), 1)
    return asked.id
  }
}

const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
}

function startRig({ fallback = 'continue' }: { readonly fallback?: HookFallback } = {}) {
  const time = new ManualTime(1_000_000)
  const threads: PlayedThread[] = []
  const lines: string[] = []
  const states = new Map<string, string>()
  /** Whether the system has no room for a thread. */
  const room = { isFull: false }
  const host = new HookHost({
    file,
    timeoutMs: 50,
    fallback,
    memoryMb: 64,
    environment: {},
    now: time.now,
    wallNow: time.wallNow,
    schedule: time.schedule,
    log: (level, message) => {
      if (!message.includes(' is loaded: ')) lines.push(`${level} ${message}`)
    },
    startThread: (listener) => {
      if (room.isFull) throw new Error('EAGAIN')
      const thread = new PlayedThread(listener)
      threads.push(thread)
      return thread
    },
    readState: async (path) => states.get(path) ?? 'first',
  })
  onTestFinished(() => host.stop())
  const thread = (index: number): PlayedThread => {
    const found = threads.at(index)
    if (found === undefined) throw new Error('there is no such thread')
    return found
  }
  /** Time passes, and promises settle on the way. */
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= 10) {
      time.advance(Math.min(10, left))
      await settled()
    }
  }
  return { time, host, thread, threads, room, lines, states, pass }
}

async function startLoaded(options: Parameters<typeof startRig>[0] = {}) {
  const rig = startRig(options)
  const started = rig.host.start()
  await settled()
  rig.thread(0).load()
  await started
  return rig
}

test('only hooks that the file exports are asked; the others cost no message', async () => {
  const { host, thread } = await startLoaded()
  expect(host.has('onInvite')).toBe(true)
  expect(host.has('onRoute')).toBe(false)
  expect(await host.ask('onRegister', {} as never)).toEqual({ kind: 'nothing' })
  host.tell('onRecord', {} as never)
  expect(thread(0).received).toEqual([])
})

test('an answer is given with the name of the file', async () => {
  const { host, thread } = await startLoaded()
  const answers = [host.ask('onInvite', call), host.ask('onInvite', call)]
  thread(0).answer({ to: '1' })
  thread(0).answer(undefined)
  expect(await Promise.all(answers)).toEqual([
    {
      kind: 'decided',
      decision: { to: '1' },
      by: 'hooks.ts',
      tenantId: null,
      fallback: 'continue',
    },
    { kind: 'nothing' },
  ])
})

test.each(['continue', 'refuse'] as const)(
  'a question without an answer within the limit ends with the fallback %s; a late one is nothing',
  async (fallback) => {
    const { host, thread, pass } = await startLoaded({ fallback })
    const asked = host.ask('onInvite', call)
    await pass(60)
    expect(await asked).toEqual({
      kind: 'failed',
      by: 'hooks.ts',
      why: 'onInvite did not answer within 50 ms',
      fallback,
    })
    thread(0).answer({ to: '1' })
    expect(host.telemetry()).toMatchObject({
      hook_on_invite_calls_total: 1,
      hook_on_invite_timeouts_total: 1,
      hooks_waiting: 0,
    })
  },
)

test('an answer that has come while this process was busy counts', async () => {
  const { host, thread, time } = await startLoaded()
  const asked = host.ask('onInvite', call)
  const id = thread(0).takeQuestion()
  time.schedule(() => thread(0).send({ type: 'answer', id, answer: { to: '1' }, micros: 1 }), 51)
  time.stall(500)
  expect((await asked).kind).toBe('decided')
})

test('ten failures in a row leave a hook out for 5 s; then one question is a trial', async () => {
  const { host, thread, pass } = await startLoaded()
  const fail = async (): Promise<void> => {
    const asked = host.ask('onInvite', call)
    thread(0).throw('TypeError: boom')
    expect(await asked).toMatchObject({ why: '/srv/hooks.ts:7: TypeError: boom' })
  }
  for (let count = 0; count < 10; count++) await fail()
  expect(await host.ask('onInvite', call)).toMatchObject({
    kind: 'failed',
    why: expect.stringContaining('left out'),
  })
  expect(thread(0).received).toEqual([])
  expect(host.telemetry()).toMatchObject({
    hook_on_invite_open: 1,
    hook_on_invite_skipped_total: 1,
  })
  await pass(5_000)
  const trial = host.ask('onInvite', call)
  expect((await host.ask('onInvite', call)).kind).toBe('failed')
  thread(0).answer({ to: '2' })
  expect((await trial).kind).toBe('decided')
  expect(host.telemetry()).toMatchObject({ hook_on_invite_open: 0 })
})

test('an answer that its call cannot use is a failure of its file, and no other one is', async () => {
  const { host, thread, lines } = await startLoaded()
  const asked = host.ask('onInvite', call)
  thread(0).answer({ set: 9 })
  expect((await asked).kind).toBe('decided')
  host.unusable('onInvite', 'routing webhook 4', 'there is no set 9')
  for (let count = 0; count < 20; count++)
    host.unusable('onInvite', 'hooks.ts', 'there is no set 9')
  const message = 'hooks.ts: the answer of onInvite cannot be used: there is no set 9'
  expect(host.troubles()).toMatchObject([{ hook: 'onInvite', message, count: 20 }])
  expect(lines).toEqual([`error hooks: ${message}`])
  expect(host.telemetry()).toMatchObject({
    hook_on_invite_failures_total: 20,
    hook_on_invite_unusable_total: 20,
    hook_on_invite_open: 0,
  })
})

test('failures are told in one entry, and fill no log', async () => {
  const { host, thread, lines, time } = await startLoaded()
  for (let count = 0; count < 9; count++) {
    void host.ask('onInvite', call)
    thread(0).throw('TypeError: boom')
    time.advance(50)
  }
  expect(lines).toEqual(['error hooks: /srv/hooks.ts:7: TypeError: boom'])
  expect(host.troubles()).toEqual([
    {
      by: 'hooks.ts',
      hook: 'onInvite',
      message: '/srv/hooks.ts:7: TypeError: boom',
      file,
      line: 7,
      count: 9,
      firstAt: 1_000_000,
      lastAt: 1_000_400,
    },
  ])
})

test('more than 2,000 questions at once get the fallback without being asked', async () => {
  const { host, thread } = await startLoaded()
  const asked = Array.from({ length: 2_000 }, () => host.ask('onInvite', call))
  expect(await host.ask('onInvite', call)).toMatchObject({
    why: expect.stringContaining('too many'),
  })
  thread(0).answer(undefined)
  await asked[0]
  expect(thread(0).received).toHaveLength(1_999)
})

test('what is told waits in a queue of 2,000; more is dropped and counted', async () => {
  const { host, thread } = await startLoaded()
  for (let count = 0; count < 2_010; count++) host.tell('onEnd', ended)
  expect(thread(0).received).toHaveLength(2_000)
  const report = { hook: 'onEnd', count: 500, failures: 2, timeouts: 1, micros: 9_000 } as const
  const problem = { message: 'no', file, line: 2 }
  thread(0).send({ type: 'told', reports: [{ ...report, problem }] })
  host.tell('onEnd', ended)
  expect(host.telemetry()).toMatchObject({
    hooks_dropped_total: 10,
    hook_on_end_calls_total: 500,
    hook_on_end_failures_total: 3,
    hook_on_end_timeouts_total: 1,
    hook_on_end_seconds_total: 0.009,
  })
  expect(thread(0).received).toHaveLength(2_001)
})

test('a thread that ends fails its questions, and is replaced after 1 s, 2 s … 30 s', async () => {
  const { host, thread, threads, pass, time } = await startLoaded()
  const asked = host.ask('onInvite', call)
  thread(0).end('its thread did not answer for a second')
  expect(await asked).toMatchObject({
    kind: 'failed',
    why: '/srv/hooks.ts: its thread did not answer for a second',
  })
  expect(host.has('onInvite')).toBe(true)
  expect((await host.ask('onInvite', call)).kind).toBe('failed')
  const waits: number[] = []
  for (let count = 1; count <= 7; count++) {
    const from = time.now()
    while (threads.length === count) await pass(100)
    waits.push(Math.round((time.now() - from) / 1_000))
    thread(-1).load()
    await settled()
    thread(-1).end('again')
  }
  expect(waits).toEqual([1, 2, 4, 8, 16, 30, 30])
  expect(host.telemetry()).toMatchObject({ hooks_restarts_total: 7, hooks_loaded: 0 })
  expect(host.troubles()).toMatchObject([{ hook: 'onInvite' }, { hook: null, count: 1 }])
})

test('a thread that the system has no room for is tried again, at a change too, and ends nothing else', async () => {
  const { host, thread, threads, room, lines, states, pass } = await startLoaded()
  room.isFull = true
  states.set(file, 'second')
  await pass(1_010)
  const why = 'its thread cannot be started: EAGAIN'
  expect(lines.join('\n')).toContain(why)
  expect([host.has('onInvite'), host.telemetry()['hooks_loaded']]).toEqual([true, 1])
  thread(0).end('exit')
  await pass(1_010)
  expect([host.telemetry()['hooks_loaded'], threads.length]).toEqual([0, 1])
  room.isFull = false
  await pass(2_010)
  thread(1).load()
  await settled()
  expect(host.telemetry()).toMatchObject({ hooks_loaded: 1, hooks_restarts_total: 2 })
})

test('no further thread is started beside three that cannot be ended', async () => {
  const { host, thread, threads, pass } = await startLoaded()
  for (let count = 1; count <= 3; count++) {
    thread(-1).isStuck = true
    thread(-1).end('its thread did not answer for a second')
    await pass(5_000)
    if (count < 3) thread(-1).load()
  }
  await pass(120_000)
  expect(threads).toHaveLength(3)
  expect(host.telemetry()).toMatchObject({ hooks_stuck_threads: 3, hooks_loaded: 0 })
})

test('a changed file is loaded by another thread first; the old one ends what it has begun', async () => {
  const { host, thread, states, pass } = await startLoaded()
  states.set(file, 'second')
  await pass(1_010)
  expect(host.has('onInvite')).toBe(true)
  const asked = host.ask('onInvite', call)
  thread(1).load(['onInvite', 'onRoute'])
  await settled()
  expect(host.has('onRoute')).toBe(true)
  expect(thread(0).received.at(-1)).toEqual({ type: 'leave' })
  thread(0).answer({ to: '1' })
  expect((await asked).kind).toBe('decided')
  expect(thread(0).isTerminated).toBe(false)
  thread(0).end('exit')
  await pass(5_000)
  expect(host.telemetry()).toMatchObject({
    hooks_reloads_total: 1,
    hooks_restarts_total: 0,
    hooks_leaving_threads: 0,
  })
})

test('a file that is being written is loaded when it stays as it is', async () => {
  const { threads, states, pass } = await startLoaded()
  for (let size = 1; size < 10; size++) {
    states.set(file, `size ${size}`)
    await pass(300)
  }
  expect(threads).toHaveLength(1)
  await pass(1_000)
  expect(threads).toHaveLength(2)
})

test('a broken file leaves the old one in charge, and says so until it is mended', async () => {
  const { host, thread, lines, states, pass } = await startLoaded()
  states.set(file, 'broken')
  await pass(1_010)
  thread(1).fail('SyntaxError: Unexpected token')
  await settled()
  expect(thread(1).isTerminated).toBe(true)
  const asked = host.ask('onInvite', call)
  thread(0).answer({ to: '1' })
  expect((await asked).kind).toBe('decided')
  expect(lines.at(-1)).toBe(
    'error hooks: the file is not loaded; the last one stays in charge: ' +
      '/srv/hooks.ts:3: SyntaxError: Unexpected token',
  )
  expect(host.troubles()).toMatchObject([{ hook: null, line: 3 }])
  states.set(file, 'mended')
  await pass(1_010)
  thread(2).load()
  await settled()
  expect(host.troubles()).toEqual([])
})

test('a start with a file that is broken, or that is never loaded, fails with one line', async () => {
  const broken = startRig()
  const start = broken.host.start()
  await settled()
  broken.thread(0).fail('SyntaxError: Unexpected token')
  await expect(start).rejects.toThrow(
    new HookFileError('/srv/hooks.ts:3: SyntaxError: Unexpected token'),
  )
  const endless = startRig()
  const waits = endless.host.start().catch(String)
  await endless.pass(10_010)
  expect(await waits).toBe('HookFileError: /srv/hooks.ts: it was not loaded within 10 s')
  expect(endless.thread(0).isTerminated).toBe(true)
})

test('lines of the file go into the log with a prefix', async () => {
  const { thread, lines } = await startLoaded()
  const printed = [{ level: 'info', text: 'looked up 4930' }] as const
  thread(0).send({ type: 'printed', lines: printed, dropped: 7 })
  expect(lines).toEqual(['info hooks: looked up 4930', 'warn hooks: lines were left out'])
})
