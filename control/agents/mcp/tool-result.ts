/**
 * The result of a tool call, sent once: as structured content with a line of text where the protocol version of the
 * client has structured content, as text elsewhere (D261).
 */
import type { CallToolResult } from '@modelcontextprotocol/server'
import type { ApiError } from '../../http/api-error.ts'
import type { ToolAnswer, ToolData } from '../tool.ts'

/** The first protocol version with structured content. */
const FIRST_STRUCTURED = '2025-06-18'

/** Without a version a request is one of 2025-03-26, as that revision says. */
export const hasStructuredContent = (protocolVersion: string | undefined): boolean =>
  (protocolVersion ?? '') >= FIRST_STRUCTURED

/**
 * `text`: the client reads text only, or an older protocol. `both`: a result that cannot be asked for again, because
 * that would make the change again.
 */
export type ResultForm = 'structured' | 'text' | 'both'

export function resultOf(name: string, answer: ToolAnswer, form: ResultForm): CallToolResult {
  if (answer.kind === 'refused')
    return { content: textBlock(refusalText(answer.error)), isError: true }
  const structuredContent = { success: true, data: answer.data }
  if (form === 'text') return { content: textBlock(JSON.stringify(structuredContent)) }
  const text = form === 'both' ? JSON.stringify(structuredContent) : summaryOf(name, answer.data)
  return { content: textBlock(text), structuredContent }
}

const textBlock = (text: string): CallToolResult['content'] => [{ type: 'text', text }]

/** More are not counted out. */
const MAX_FIGURES = 6

/** Figures only: names and numbers of strangers are in the structured content. */
function summaryOf(name: string, data: ToolData): string {
  const figures = Object.entries(data)
    .flatMap(([key, value]) => {
      if (Array.isArray(value)) return [`${key}: ${value.length}`]
      return typeof value === 'number' || typeof value === 'boolean' ? [`${key}: ${value}`] : []
    })
    .slice(0, MAX_FIGURES)
  const counted = figures.length === 0 ? '' : `: ${figures.join(', ')}`
  return `${name}${counted}. The answer is in structuredContent; if you see only this line, call again with "as_text": true.`
}

/** Formats an error: what to do next, then which arguments are invalid. */
export function refusalText({ code, message, details = [] }: ApiError): string {
  const problems = details.map(({ path, message: what }) =>
    path === '' ? what : `${path}: ${what}`,
  )
  return [`${message}.`.replace(/\.\.$/, '.').replace(/\?\.$/, '?'), ...problems, `(${code})`].join(
    '\n',
  )
}
