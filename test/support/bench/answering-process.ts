/** `answering-server.ts` as the process that drives it sees it. */
import { fork, type ChildProcess } from 'node:child_process'
import type { ServerFigures } from './answering-server.ts'

interface Asked {
  readonly resolve: (answer: ServerFigures) => void
  readonly reject: (reason: Error) => void
}

export class AnsweringProcess {
  readonly #child: ChildProcess
  readonly #asked: Asked[] = []
  #port = 0

  private constructor(child: ChildProcess) {
    this.#child = child
    // What the other side sends is declared beside it.
    child.on('message', (answer) => this.#asked.shift()?.resolve(answer as ServerFigures))
    child.on('exit', (code) => {
      for (const { reject } of this.#asked.splice(0))
        reject(new Error(`the server has ended: ${String(code)}`))
    })
  }

  static async start(words: readonly string[] = []): Promise<AnsweringProcess> {
    const child = fork(`${import.meta.dirname}/answering-server.ts`, [...words], {
      execArgv: [...process.execArgv, '--expose-gc'],
    })
    const server = new AnsweringProcess(child)
    server.#port = (await server.#answer()).port
    return server
  }

  get port(): number {
    return this.#port
  }

  /** After a collection of garbage; the lag counts from the last `reset` on. */
  figures(command: 'figures' | 'reset' = 'figures'): Promise<ServerFigures> {
    this.#child.send(command)
    return this.#answer()
  }

  /** Datagrams that it has taken from its socket. */
  async received(): Promise<number> {
    this.#child.send('count')
    return (await this.#answer()).received
  }

  stop(): void {
    this.#child.disconnect()
  }

  #answer(): Promise<ServerFigures> {
    return new Promise((resolve, reject) => {
      this.#asked.push({ resolve, reject })
    })
  }
}
