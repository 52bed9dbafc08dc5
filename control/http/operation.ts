/** The description of a route in the OpenAPI document, beyond the notes of its handlers. */
import type { z } from 'zod'
import type { ErrorStatus } from './api-error.ts'

/** The tags are in the order of the page. */
export const tags = {
  System: 'Health, telemetry, audit log and SIP bans.',
  Changes: 'What operators and agents changed, and its undoing.',
  Keys: 'Application keys: credentials for programs.',
  Sessions: 'Login and logout.',
  Users: 'Staff accounts.',
  Tenants: 'Customer organisations, their SIP domains and numbers.',
  Dispatcher: 'Sets of backend nodes, their health and state.',
  Routing: 'Carriers, outbound routes and inbound routes.',
  Extensions: 'PBX extensions and their registered phones.',
  Calls: 'Live calls, call control and call records.',
  Agents: 'AI agents that answer calls.',
  Customers: 'Customers, wallets and ledgers.',
  Rates: 'Rate plans and rates.',
  'Spend guards': 'Brakes on calls to a prefix of called numbers.',
  Charging: 'Online charging for nodes: authorize, extend and report calls.',
  Payments: 'Payment events, and alerts that need attention.',
  'Customer edge': 'Self-service for customers.',
  Proposals: 'Changes that agents propose and people decide on.',
  'Signed calls': 'Keys and authorities of STIR/SHAKEN.',
  Webhooks: 'Call and billing events, sent to HTTP endpoints.',
  Alerts: 'Rules by which people are told, by e-mail, Slack, PagerDuty and webhook.',
  'Tools for AI agents': 'The MCP tools over plain HTTP.',
} as const

export interface Operation {
  /** `operationId`: the name in generated clients. */
  readonly id: string
  readonly tag: keyof typeof tags
  readonly summary: string
  readonly answer: DocumentedAnswer
  /** A request for a range of its bytes gets 206. */
  readonly hasRanges?: boolean
  /**
   * `all`: about all instances of the installation; `call`: about one call, on whichever instance
   * it is.
   */
  readonly instances?: 'all' | 'call'
  /** Statuses that do not already follow from access, schemas and method. */
  readonly refusals?: readonly ErrorStatus[]
  /** A valid example. */
  readonly body?: unknown
  /** The content type of a body that is not JSON checked by a schema. */
  readonly bodyType?: string
}

export interface DocumentedAnswer {
  /** 302 sends a browser on. */
  readonly status: 200 | 201 | 202 | 302
  readonly content: Readonly<Record<string, Content>>
}

interface Content {
  /** Undefined for text, which JSON Schema cannot describe. */
  readonly schema: AnswerSchema | undefined
  readonly example: unknown
}

export interface AnswerSchema {
  /**
   * In the envelope of SPECIFICATION.md §2.7, without or with page metadata; or bare
   * (SPECIFICATION.md §4.1).
   */
  readonly form: 'data' | 'list' | 'bare'
  readonly schema: z.ZodType
}

type Status = DocumentedAnswer['status']

const json = (
  form: AnswerSchema['form'],
  schema: z.ZodType,
  status: Status,
  example: unknown,
): DocumentedAnswer => ({
  status,
  content: { 'application/json': { schema: { form, schema }, example } },
})

/** `{success: true, data}`. */
export const data = (schema: z.ZodType, example: unknown, status: Status = 200): DocumentedAnswer =>
  json('data', schema, status, { success: true, data: example })

/** `{success: true, data: [], meta}`; the example is one element. */
export const list = (element: z.ZodType, example: unknown): DocumentedAnswer =>
  json('list', element, 200, {
    success: true,
    data: [example],
    meta: { page: 1, limit: 50, total: 1 },
  })

/** Describes an answer without the envelope. */
export const bare = (schema: z.ZodType, example: unknown, status: Status = 200): DocumentedAnswer =>
  json('bare', schema, status, example)

export const text = (mediaType: string, example: string): DocumentedAnswer => ({
  status: 200,
  content: { [mediaType]: { schema: undefined, example } },
})

/** One response in several content types, chosen by `Accept`. */
export const either = (
  first: DocumentedAnswer,
  ...others: readonly DocumentedAnswer[]
): DocumentedAnswer => ({
  ...first,
  content: Object.assign(
    {},
    first.content,
    ...others.map(({ content }) => content),
  ) as DocumentedAnswer['content'],
})
