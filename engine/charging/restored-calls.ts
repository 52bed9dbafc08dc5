/** Calls that the last run left open: those that are closed now, and those that may go on. */
import type { RecoveredCalls, SavedEntry } from '../../schema/contracts/charging.ts'
import type { CallJournal } from '../../schema/journal/call-journal.ts'
import type { CutCall, JournalEntry } from '../../schema/journal/journal-entries.ts'
import type { CallWriter } from './call-writer.ts'

/** An answered call of the last run that may go on. */
export type RestoredCall = CutCall & { readonly state: NonNullable<CutCall['state']> }

interface LeftOpen {
  readonly toClose: readonly JournalEntry[]
  readonly saved: readonly RestoredCall[]
}

export class RestoredCalls {
  readonly #journal: CallJournal
  readonly #writer: CallWriter
  /** Neither resumed nor abandoned. */
  readonly #saved = new Map<string, RestoredCall>()

  constructor(journal: CallJournal, writer: CallWriter) {
    this.#journal = journal
    this.#writer = writer
  }

  /** Reads what the journal has: the calls to be closed, and those that may go on. */
  async open(nowMs: number): Promise<LeftOpen> {
    const entries = this.#journal.left()
    const recorded = await this.#writer.recorded(entries.map(({ callUuid }) => callUuid))
    for (const callUuid of recorded) this.#writer.kept.stored(callUuid)
    const left = entries.filter(({ callUuid }) => !recorded.has(callUuid))
    for (const entry of left)
      if (hasState(entry)) this.#saved.set(entry.callUuid, notAhead(entry, nowMs))
    return {
      toClose: left.filter((entry) => !hasState(entry)),
      saved: [...this.#saved.values()],
    }
  }

  /** Undefined: the last run left no such call, or it was taken. */
  take(callUuid: string): RestoredCall | undefined {
    const call = this.#saved.get(callUuid)
    this.#saved.delete(callUuid)
    return call
  }
}

/** Describes them to call control. */
export function toRecovered({ toClose, saved }: LeftOpen): RecoveredCalls {
  const unansweredCalls = toClose.filter(({ kind }) => kind === 'unanswered').length
  const recoveredCalls = toClose.length - unansweredCalls
  return { recoveredCalls, unansweredCalls, saved: saved.map(toSavedEntry) }
}

const hasState = (entry: JournalEntry): entry is RestoredCall =>
  entry.kind === 'cut' && entry.state !== undefined

/**
 * The clock of another boot may have been ahead of this one: a sign of life is never later than
 * now.
 */
function notAhead(call: RestoredCall, nowMs: number): RestoredCall {
  const { answeredMs, shiftMs } = call.state
  const aheadMs = Math.max(0, answeredMs + call.talkedMs - nowMs)
  const state = { answeredMs: answeredMs - aheadMs, shiftMs: shiftMs - aheadMs }
  return { ...call, state: { ...call.state, ...state } }
}

const toSavedEntry = ({ callUuid, call, talkedMs, state }: RestoredCall): SavedEntry => ({
  callUuid,
  call,
  state: state.text,
  change: state.change,
  shiftMs: state.shiftMs,
  aliveAt: state.answeredMs + talkedMs,
})
