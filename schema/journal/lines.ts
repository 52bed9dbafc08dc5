/** The lines of the journal: their form, and by whose clock their times are. */
import type { BegunCall, EndTerms, OpenCall, SavedState, Tariff } from './call-journal.ts'
import type { CallRecord } from '../call-record.ts'
import type { Boot } from '../clock.ts'
import { checked, textOf } from './journal-file.ts'
import type { KeptLine } from './line-memory.ts'
import { callForm, grantForm, tariffForm, type Values } from './values.ts'

/** Lines that are JSON. `boot` says by whose steady clock the times of a line are. */
export type Line =
  /** A call. */
  | { readonly begun: Values }
  | AnsweredLine
  | { readonly alive: readonly string[]; readonly at: number; readonly boot?: string | undefined }
  | { readonly ended: CallRecord; readonly terms: EndTerms }
  /** The database has its record, or its caller was refused. */
  | { readonly gone: string }
  /** The process has stopped, and with it every call. */
  | { readonly stopped: true }

interface AnsweredLine {
  /** An object: an earlier version wrote it. */
  readonly answered: Values | OpenCall
  readonly tariff: Values | Tariff | null
  readonly answeredMs: number
  readonly boot?: string | undefined
}

export const toBegun = (call: BegunCall): Line => ({ begun: callForm.write(call) })

export const toAnswered = (
  call: OpenCall,
  tariff: Tariff | null,
  answeredMs: number,
  boot: string | undefined,
): Line => ({
  answered: callForm.write(call),
  tariff: tariff && tariffForm.write(tariff),
  answeredMs,
  boot,
})

export const readAnswered = ({ answered, tariff, answeredMs, boot }: AnsweredLine) => ({
  call: isValues(answered) ? callForm.read(answered) : answered,
  tariff: isValues(tariff) ? tariffForm.read(tariff) : tariff,
  answeredMs,
  boot,
})

const isValues = (written: object | null): written is Values => Array.isArray(written)

export const toLine = (line: Line): Buffer => checked(JSON.stringify(line))

/** Only the journal writes them, so each is of the kind that it was noted as. */
export const readLine = <L extends Line>({ slot, length }: KeptLine): L =>
  JSON.parse(textOf(slot, length)) as L

interface StateHead {
  readonly saved: string
  readonly grant?: Values | undefined
  readonly boot?: string | undefined
}

/**
 * A line of its own, so that damage to it costs the state alone. The text follows the head as it is: as one of
 * its values it would be escaped and read a second time.
 */
export function toStateLine(
  callUuid: string,
  { text, grant }: SavedState,
  boot: string | undefined,
): Buffer {
  const head: StateHead = { saved: callUuid, grant: grant && grantForm.write(grant), boot }
  return checked(`${JSON.stringify(head)}\t${text}`)
}

export function readStateLine(text: string): { readonly head: StateHead; readonly text: string } {
  const end = text.indexOf('\t')
  // Only `toStateLine` writes them.
  return { head: JSON.parse(text.slice(0, end)) as StateHead, text: text.slice(end + 1) }
}

export const isStateLine = (text: string): boolean => text.startsWith('{"saved":')

/** The uuids of the calls that the heads of a damaged line, or of lines that damage has joined, name. */
export function callsIn(damaged: string): readonly string[] {
  const heads = damaged.replaceAll(/\t.*?(?=[\da-f]{8} \{"|$)/gs, '')
  const found = heads.matchAll(/"(?:callUuid|gone|saved|begun|answered)":\[?"([^"]*)"/g)
  return [...new Set([...found].flatMap(([, uuid]) => uuid ?? []))]
}

export const bootText = ({ id, at }: Boot): string => `${id.slice(0, 8)} ${at}`

/** What is added to times of the process that wrote `from`. Since another boot: both are near UTC. */
export function shiftMs(from: string | undefined, to: string | undefined): number {
  if (from === undefined || to === undefined) return 0
  const [fromId, fromAt] = from.split(' ')
  const [toId, toAt] = to.split(' ')
  return fromId === toId ? Number(toAt) - Number(fromAt) : 0
}
