/** Answers that need not be worked out again: those to the last questions, a bounded number. */
export class Recent<Answer> {
  readonly #max: number
  readonly #find: (question: string) => Answer
  /** In the order in which they came in. */
  readonly #answers = new Map<string, Answer>()

  /** `find` depends on nothing but the question, or else somebody calls `forget`. */
  constructor(max: number, find: (question: string) => Answer) {
    this.#max = max
    this.#find = find
  }

  get(question: string): Answer {
    const known = this.#answers.get(question)
    if (known !== undefined) return known
    const answer = this.#find(question)
    if (answer === undefined) return answer
    if (this.#answers.size >= this.#max) {
      const [oldest] = this.#answers.keys()
      if (oldest !== undefined) this.#answers.delete(oldest)
    }
    this.#answers.set(question, answer)
    return answer
  }

  forget(): void {
    this.#answers.clear()
  }
}
