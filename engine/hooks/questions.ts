/** Questions that wait for an answer. All have the same limit, so the oldest one ends first. */
import type { Schedule } from '../../schema/clock.ts'
import type { DecidingHook } from '../../schema/contracts/hooks.ts'
import type { ThrownProblem } from './thrown.ts'

/** Beyond, a question is not asked. */
const MAX_QUESTIONS = 2_000

export type QuestionOutcome =
  | { readonly kind: 'answered'; readonly answer: unknown; readonly micros: number }
  | { readonly kind: 'failed'; readonly problem: ThrownProblem; readonly micros: number }
  | { readonly kind: 'overdue' }

interface Question {
  readonly hook: DecidingHook
  /** The thread that was asked. */
  readonly thread: object
  readonly settle: (outcome: QuestionOutcome) => void
}

export class Questions {
  readonly #limitMs: number
  readonly #now: () => number
  readonly #schedule: Schedule
  readonly #waiting = new Map<number, Question & { readonly until: number }>()
  #last = 0
  #isTimed = false

  constructor(deps: {
    readonly limitMs: number
    readonly now: () => number
    readonly schedule: Schedule
  }) {
    this.#limitMs = deps.limitMs
    this.#now = deps.now
    this.#schedule = deps.schedule
  }

  get size(): number {
    return this.#waiting.size
  }

  get isFull(): boolean {
    return this.#waiting.size >= MAX_QUESTIONS
  }

  /** @returns the id of the question. */
  add(question: Question): number {
    const id = ++this.#last
    this.#waiting.set(id, { ...question, until: this.#now() + this.#limitMs })
    this.#time(this.#limitMs)
    return id
  }

  /** An answer that comes too late belongs to no question. */
  settle(id: number, outcome: QuestionOutcome): void {
    const question = this.#waiting.get(id)
    if (question === undefined) return
    this.#waiting.delete(id)
    question.settle(outcome)
  }

  /** The thread gives no answer any more. */
  failThoseOf(thread: object, problem: ThrownProblem): void {
    for (const [id, question] of this.#waiting)
      if (question.thread === thread) this.settle(id, { kind: 'failed', problem, micros: 0 })
  }

  /** One timer for all: most questions are answered long before it. */
  #time(delayMs: number): void {
    if (this.#isTimed) return
    this.#isTimed = true
    this.#schedule(() => {
      // Answers that have come while this process was busy are read first.
      this.#schedule(() => this.#sweep(), 0)
    }, delayMs)
  }

  #sweep(): void {
    this.#isTimed = false
    const now = this.#now()
    for (const [id, { until }] of this.#waiting) {
      if (until > now) return this.#time(until - now)
      this.settle(id, { kind: 'overdue' })
    }
  }
}
