/** Answers that need not be worked out again: those to the last questions, a bounded number. */
import type { LRUCache } from 'lru-cache'
import { recentlyUsed } from '../../schema/recently-used.ts'
import { detachString } from '../../schema/sip/index.ts'

/** Longer questions are rare, and are not remembered. */
const MAX_QUESTION = 1_000

/** An answer of null or undefined is not remembered. */
export class Recent<Answer extends object | string | undefined> {
  readonly #find: (question: string) => Answer
  readonly #answers: LRUCache<string, NonNullable<Answer>>

  /** `find` depends on nothing but the question. */
  constructor(max: number, find: (question: string) => Answer) {
    this.#find = find
    this.#answers = recentlyUsed(max)
  }

  get(question: string): Answer {
    const known = this.#answers.get(question)
    if (known !== undefined) return known
    if (question.length > MAX_QUESTION) return this.#find(question)
    const own = detachString(question)
    const answer = this.#find(own)
    if (answer !== undefined && answer !== null) this.#answers.set(own, answer)
    return answer
  }
}
