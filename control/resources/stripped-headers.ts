/** Headers that are not sent to a carrier or an agent. */
import { z } from 'zod'
import { readNames } from '../../schema/rules/media.ts'

const maxHeaders = 32

/** Without them there is no call. */
const needed = new Set([
  'via',
  'from',
  'to',
  'contact',
  'call-id',
  'cseq',
  'max-forwards',
  'route',
  'record-route',
  'content-type',
  'content-length',
  'content-encoding',
  'content-disposition',
  'require',
  'supported',
  'allow',
  'authorization',
  'proxy-authorization',
  'session-expires',
  'min-se',
])

const headerName = z
  .string()
  .regex(/^[\w.!%*+`'~-]{1,64}$/, 'must be the name of a header')
  .refine((name) => !needed.has(name.toLowerCase()), 'names a header that every call needs')

export const stripHeaders = z
  .array(headerName)
  .max(maxHeaders)
  .default([])
  .describe('Headers that are not sent to it, in any case.')

export const stripHeadersColumn = (names: readonly string[]): string | null =>
  names.length === 0 ? null : JSON.stringify(names)

export const stripHeadersView = (column: string | null): string[] =>
  column === null ? [] : [...(readNames(column) ?? [])]
