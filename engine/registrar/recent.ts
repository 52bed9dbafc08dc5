/** Answers that need not be worked out again: those to the last questions, a bounded number. */
import { detachString } from '../sip-server/message/index.ts'

/** Longer questions are rare, and are not remembered. */
const MAX_QUESTION = 1_000

export class Recent<Answer> {
  readonly #max: number
  readonly #find: (question: string) => Answer
  /** In the order in which they came in. */
  readonly #answers = new Map<string, Answer>()

  /** `find` depends on nothing but the question, or else its owner calls `forget`. */
  constructor(max: number, find: (question: string) => Answer) {
    this.#max = max
    this.#find = find
  }

  get(question: string): Answer {
    const known = this.#answers.get(question)
    if (known !== undefined) return known
    if (question.length > MAX_QUESTION) return this.#find(question)
    const own = detachString(question)
    const answer = this.#find(own)
    if (answer === undefined) return answer
    if (this.#answers.size >= this.#max) {
      const [oldest] = this.#answers.keys()
      if (oldest !== undefined) this.#answers.delete(oldest)
    }
    this.#answers.set(own, answer)
    return answer
  }

  forget(): void {
    this.#answers.clear()
  }
}
