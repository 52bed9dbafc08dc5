/**
 * An agent on call, as a script: it knows nothing of a platform but what the tools of MCP answer, and follows what
 * they name. Its calls and the size of their answers are counted.
 */
import type { Client } from '@modelcontextprotocol/client'
import { textOf } from './mcp-client.ts'

export type Data = Readonly<Record<string, unknown>>

export interface FirstStep {
  readonly tool: string
  readonly arguments: Data
}

export interface Diagnosis {
  /** What the answers say, in their words. */
  readonly said: string
  /** Uuids of calls or keys. */
  readonly evidence: readonly string[]
  /** Null: a person has to act. */
  readonly firstStep: FirstStep | null
}

interface Finding {
  readonly kind: string
  readonly subject: string
  readonly what: string
  readonly evidence: readonly string[]
  readonly next: FirstStep
  readonly first_step: FirstStep | null
}

interface CallShown {
  readonly call_uuid: string
  readonly destination_number: string
  readonly caller_id_number: string
  readonly denial_code: string | null
  readonly carrier: string | null
  readonly attempts: readonly { readonly destination: string; readonly status: number }[]
}

interface NodeShown {
  readonly id: number
  readonly setId: number
  readonly destination: string
  readonly state: string
  readonly description: string | null
}

export class OnCallAgent {
  readonly #client: Client
  readonly #said: string[] = []
  calls = 0
  bytes = 0

  constructor(client: Client) {
    this.#client = client
  }

  /** The data of an answer; a refusal is an answer, too. */
  async ask<T = Data>(name: string, given: Data = {}): Promise<T> {
    const result = await this.#client.callTool({ name, arguments: { ...given } })
    this.calls += 1
    this.bytes += Buffer.byteLength(JSON.stringify(result))
    if (result.isError === true) {
      this.#said.push(textOf(result))
      return {} as T
    }
    const { data } = result.structuredContent as { readonly data: T }
    return data
  }

  /** Reads the cause, and remembers the sentence. */
  note(...sentences: readonly unknown[]): void {
    for (const sentence of sentences)
      this.#said.push(typeof sentence === 'string' ? sentence : JSON.stringify(sentence))
  }

  done(evidence: readonly string[], firstStep: FirstStep | null): Diagnosis {
    return { said: this.#said.join('\n'), evidence, firstStep }
  }

  async finding(kinds: readonly string[], about = ''): Promise<Finding> {
    const { findings } = await this.ask<{ findings: readonly Finding[] }>('find_anomalies', {
      kinds,
    })
    const found = findings.find(({ what }) => what.includes(about))
    if (found === undefined) throw new Error(`no finding of ${kinds.join()} is about "${about}"`)
    this.note(found.what)
    return found
  }

  async explain(uuid: string): Promise<void> {
    const { explanation, advice, record } = await this.ask<{
      explanation: string
      advice: string | null
      record: CallShown | null
    }>('explain_call', { call_uuid: uuid })
    this.note(explanation, advice ?? '', record?.denial_code ?? '', record?.attempts ?? '')
  }

  async records(given: Data): Promise<readonly CallShown[]> {
    return (
      await this.ask<{ records: readonly CallShown[] }>('search_cdrs', { limit: 8, ...given })
    ).records
  }

  async nodes(given: Data = {}): Promise<readonly NodeShown[]> {
    return (await this.ask<{ nodes: readonly NodeShown[] }>('get_dispatcher_status', given)).nodes
  }
}
