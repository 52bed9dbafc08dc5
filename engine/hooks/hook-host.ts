/**
 * The operator's file of hooks, as the engine asks it. A thread runs it: whatever the file does, a
 * question is answered within the limit, and the event loop of the process is not kept.
 */
import { basename, resolve } from 'node:path'
import type { Schedule } from '../../schema/clock.ts'
import type {
  DecidingHook,
  HookAnswer,
  HookArgument,
  HookDecisions,
  HookFallback,
  HookName,
  HookPort,
  HookTrouble,
  ToldHook,
} from '../../schema/contracts/hooks.ts'
import type { Log } from '../../schema/contracts/log.ts'
import { CircuitBreaker } from './circuit-breaker.ts'
import { fileState, type ReadState } from './watched-files.ts'
import { HookFailures } from './hook-failures.ts'
import { HookFigures } from './hook-figures.ts'
import { decidingHooks, figureOf } from './hook-names.ts'
import { HookThread, type HookThreadPort, type ThreadListener } from './hook-thread.ts'
import { type ServedApplications, ThreadApplications } from './thread-applications.ts'
import { type QuestionOutcome, Questions } from './questions.ts'
import type { ThreadMessage, ToldReport } from './thread-messages.ts'
import { ThreadKeeper } from './thread-keeper.ts'
import { placeless, problemLine, type ThrownProblem } from './thrown.ts'

/** Hooks that were told something and have not ended; beyond, what is told is dropped. */
const MAX_TOLD = 2_000

export interface HookHostDeps {
  /** From the working directory, or absolute. */
  readonly file: string
  readonly timeoutMs: number
  readonly fallback: HookFallback
  readonly memoryMb: number
  /** Environment of the file, without secrets of ours. */
  readonly environment: Readonly<Record<string, string>>
  /** Milliseconds by a clock that never steps. */
  readonly now: () => number
  /** Milliseconds UTC. */
  readonly wallNow: () => number
  readonly schedule: Schedule
  readonly log: Log
  /** Absent: a thread of Node. */
  readonly startThread?: (listener: ThreadListener) => HookThreadPort
  readonly readState?: ReadState
}

/** The file cannot be loaded at the start: one line, with file and line. */
export class HookFileError extends Error {
  override readonly name = 'HookFileError'
}

const nothing = { kind: 'nothing' } as const

export class HookHost implements HookPort {
  readonly #deps: HookHostDeps
  /** Names the file in answers. */
  readonly #by: string
  readonly #keeper: ThreadKeeper
  readonly #questions: Questions
  readonly #breakers: ReadonlyMap<DecidingHook, CircuitBreaker>
  readonly #figures = new HookFigures()
  readonly #failures: HookFailures
  readonly #applications = new ThreadApplications()
  /** Those of the thread in charge; while it is replaced, those of the last one. */
  #hooks: ReadonlySet<HookName> = new Set()
  /** The same of its application. */
  #hasApplication = false
  /** Told and not finished, by thread. */
  readonly #told = new WeakMap<HookThreadPort, number>()
  #dropped = 0

  constructor(deps: HookHostDeps) {
    const { now, schedule, log, timeoutMs: limitMs } = deps
    this.#deps = deps
    const file = resolve(deps.file)
    this.#by = basename(file)
    this.#questions = new Questions({ limitMs, now, schedule })
    this.#breakers = new Map(decidingHooks.map((hook) => [hook, new CircuitBreaker(now)]))
    this.#failures = new HookFailures({ by: this.#by, wallNow: deps.wallNow, log })
    this.#keeper = new ThreadKeeper({
      file,
      schedule,
      log,
      startThread: deps.startThread ?? ((listener) => new HookThread({ ...deps, file }, listener)),
      readState: deps.readState ?? fileState,
      onMessage: (thread, message) => this.#receive(thread, message),
      onGone: (thread, problem) => {
        this.#questions.failThoseOf(thread, problem)
        this.#applications.gone(thread)
      },
      onProblem: (problem) => this.#failures.note(null, problem),
      onLoaded: ({ hooks, hasApplication }) => {
        this.#hooks = new Set(hooks)
        this.#hasApplication = hasApplication
        const { current } = this.#keeper
        if (current !== undefined) this.#applications.inCharge(current, hasApplication)
        this.#failures.clearFile()
      },
    })
  }

  /** @throws {HookFileError} the file cannot be loaded. */
  async start(): Promise<void> {
    const problem = await this.#keeper.start()
    if (problem === undefined) return
    this.#keeper.stop()
    throw new HookFileError(problemLine(problem))
  }

  /** SIP is served: applications of drachtio-srf may take calls. */
  serveApplications(served: ServedApplications): void {
    this.#applications.serve(served, this.#keeper.current, this.#hasApplication)
  }

  /** Loads the file again. */
  reload(): Promise<void> {
    return this.#keeper.reload()
  }

  stop(): void {
    this.#keeper.stop()
  }

  has(hook: HookName): boolean {
    return this.#hooks.has(hook)
  }

  ask<H extends DecidingHook>(
    hook: H,
    argument: HookArgument<H>,
  ): Promise<HookAnswer<HookDecisions[H]>> {
    if (!this.#hooks.has(hook)) return Promise.resolve(nothing)
    const thread = this.#keeper.current
    if (thread === undefined) return this.#skip(hook, 'the thread of the file is being replaced')
    if (this.#questions.isFull) return this.#skip(hook, 'too many questions wait for an answer')
    if (this.#breakers.get(hook)?.admits() !== true)
      return this.#skip(hook, `${hook} is left out for a moment, as it failed again and again`)
    return new Promise((settle) => {
      const id = this.#questions.add({
        hook,
        thread,
        settle: (outcome) => settle(this.#answerOf(hook, outcome)),
      })
      this.#post(thread, id, hook, argument)
    })
  }

  tell<H extends ToldHook>(hook: H, argument: HookArgument<H>): void {
    if (!this.#hooks.has(hook)) return
    const thread = this.#keeper.current
    const waiting = thread === undefined ? MAX_TOLD : (this.#told.get(thread) ?? 0)
    if (thread === undefined || waiting >= MAX_TOLD) {
      this.#dropped += 1
      this.#figures.of(hook).skipped += 1
      return
    }
    this.#told.set(thread, waiting + 1)
    thread.post({ type: 'tell', hook, argument })
  }

  unusable(hook: DecidingHook, by: string, why: string): void {
    if (by !== this.#by) return
    const counts = this.#figures.of(hook)
    counts.failures += 1
    counts.unusable += 1
    this.#failures.note(hook, placeless(`${by}: the answer of ${hook} cannot be used: ${why}`))
  }

  /** Failures, for people. */
  troubles(): readonly HookTrouble[] {
    return this.#failures.list()
  }

  telemetry(): Readonly<Record<string, number>> {
    const breakers = [...this.#breakers].filter(([hook]) => this.#hooks.has(hook))
    return {
      ...this.#keeper.telemetry(),
      hooks_waiting: this.#questions.size,
      hooks_dropped_total: this.#dropped,
      hooks_errors_total: this.#failures.total,
      ...this.#figures.telemetry(),
      ...Object.fromEntries(
        breakers.map(([hook, { isOpen }]) => [`hook_${figureOf(hook)}_open`, Number(isOpen)]),
      ),
    }
  }

  #post(thread: HookThreadPort, id: number, hook: DecidingHook, argument: unknown): void {
    try {
      thread.post({ type: 'ask', id, hook, argument })
    } catch (error) {
      const problem = placeless(`the question cannot be sent: ${String(error)}`)
      this.#questions.settle(id, { kind: 'failed', problem, micros: 0 })
    }
  }

  #skip(hook: DecidingHook, why: string): Promise<HookAnswer<never>> {
    this.#figures.of(hook).skipped += 1
    return Promise.resolve(this.#failed(why))
  }

  #failed(why: string): HookAnswer<never> {
    return { kind: 'failed', by: this.#by, why, fallback: this.#deps.fallback }
  }

  #answerOf<H extends DecidingHook>(
    hook: H,
    outcome: QuestionOutcome,
  ): HookAnswer<HookDecisions[H]> {
    const counts = this.#figures.of(hook)
    counts.calls += 1
    if (outcome.kind === 'answered') {
      counts.micros += outcome.micros
      this.#breakers.get(hook)?.succeeded()
      if (outcome.answer === undefined) return nothing
      // The thread has checked it by `checkDecision`.
      const decision = outcome.answer as HookDecisions[H]
      const { fallback } = this.#deps
      return { kind: 'decided', decision, by: this.#by, tenantId: null, fallback }
    }
    const problem = this.#problemOf(hook, outcome)
    if (outcome.kind === 'overdue') {
      counts.timeouts += 1
      counts.micros += this.#deps.timeoutMs * 1_000
    } else counts.micros += outcome.micros
    counts.failures += 1
    this.#failures.note(hook, problem)
    if (this.#breakers.get(hook)?.failed() === true)
      this.#deps.log('warn', `hooks: ${hook} is left out for 5 s`, { by: this.#by })
    return this.#failed(problemLine(problem))
  }

  #problemOf(
    hook: DecidingHook,
    outcome: Exclude<QuestionOutcome, { readonly kind: 'answered' }>,
  ): ThrownProblem {
    if (outcome.kind === 'failed') return outcome.problem
    return placeless(`${hook} did not answer within ${this.#deps.timeoutMs} ms`)
  }

  #receive(thread: HookThreadPort, message: ThreadMessage): void {
    switch (message.type) {
      case 'answer': {
        const { id, answer, micros } = message
        return this.#questions.settle(id, { kind: 'answered', answer, micros })
      }
      case 'failed': {
        const { id, problem, micros } = message
        return this.#questions.settle(id, { kind: 'failed', problem, micros })
      }
      case 'told':
        return message.reports.forEach((report) => this.#countTold(thread, report))
      case 'uncaught': {
        const { problem } = message
        const line = `an error that nothing caught: ${problem.message}`
        return this.#failures.note(null, { ...problem, message: line })
      }
      case 'printed':
        for (const { level, text } of message.lines) this.#deps.log(level, `hooks: ${text}`)
        if (message.dropped > 0)
          this.#deps.log('warn', 'hooks: lines were left out', { lines: message.dropped })
        return undefined
      case 'taking':
        return this.#applications.taking(thread, message.port)
      case 'loaded':
      case 'broken':
      case 'imported':
      case 'pong':
        return undefined
    }
  }

  #countTold(thread: HookThreadPort, report: ToldReport): void {
    const { hook, count, failures, timeouts, micros, problem } = report
    this.#told.set(thread, Math.max(0, (this.#told.get(thread) ?? 0) - count))
    const counts = this.#figures.of(hook)
    counts.calls += count
    counts.failures += failures + timeouts
    counts.timeouts += timeouts
    counts.micros += micros
    if (timeouts > 0)
      this.#failures.note(hook, placeless(`${hook} did not end within 30 s`), timeouts)
    if (problem !== undefined) this.#failures.note(hook, problem, failures)
  }
}
