/** A call that has ended as a vCon (draft-ietf-vcon-vcon-core, before: draft-ietf-vcon-vcon-container), unsigned. */
import type { Disposition } from '../../schema/contracts/field-values.ts'
import type { CdrView } from '../reports/cdr-view.ts'

const SYNTAX_VERSION = '0.4.0'
const json = { mediatype: 'application/json', encoding: 'json' } as const

/** Indices of `parties`. */
const CALLER = 0
const CALLEE = 1
/** The only dialog. */
const DIALOG = 0

export interface CallFiles {
  /** Where the recording is heard. */
  readonly recordingUrl: string
  /** As `GET /calls/{uuid}/trace` shows it; undefined: not kept, or not to be seen. */
  readonly trace: object | undefined
}

export function vconOf(record: CdrView, { recordingUrl, trace }: CallFiles) {
  const attached = { start: record.start_stamp, party: CALLER, dialog: DIALOG, ...json }
  const { media_quality: quality } = record
  return {
    vcon: SYNTAX_VERSION,
    uuid: record.call_uuid,
    created_at: record.end_stamp,
    subject: `Call from ${record.caller_id_number} to ${record.destination_number}`,
    parties: [partyOf(record.caller_id_number), partyOf(record.destination_number)],
    dialog: [dialogOf(record, recordingUrl)],
    analysis:
      quality === null
        ? []
        : [
            {
              type: 'report',
              dialog: DIALOG,
              vendor: 'Tollgate',
              schema: 'MediaQuality',
              ...json,
              body: quality,
            },
          ],
    attachments: [
      { purpose: 'call-record', ...attached, body: record },
      ...(trace === undefined ? [] : [{ purpose: 'sip-trace', ...attached, body: trace }]),
    ],
  }
}

export type Vcon = ReturnType<typeof vconOf>

/** Anything may have been dialled: only a number is a tel URI. */
const partyOf = (number: string) =>
  /^\+?[\d*#]+$/.test(number) ? { tel: `tel:${number}` } : { name: number }

function dialogOf(record: CdrView, recordingUrl: string) {
  const { recording, disposition } = record
  const common = { parties: [CALLER, CALLEE], originator: CALLER }
  if (disposition !== 'ANSWERED')
    return {
      type: 'incomplete',
      start: record.start_stamp,
      duration: record.duration,
      ...common,
      disposition: incomplete[disposition],
    }
  return {
    type: 'recording',
    start: record.answer_stamp ?? record.start_stamp,
    duration: recording?.duration ?? record.billsec,
    ...common,
    ...(recording !== null && {
      mediatype: 'audio/wav',
      filename: `${record.call_uuid}.wav`,
      url: recordingUrl,
      content_hash: `sha256-${Buffer.from(recording.sha256, 'hex').toString('base64url')}`,
    }),
  }
}

const incomplete: Readonly<Record<Exclude<Disposition, 'ANSWERED'>, string>> = {
  BUSY: 'busy',
  'NO ANSWER': 'no-answer',
  CANCELED: 'hung-up',
  CONGESTION: 'congestion',
  FAILED: 'failed',
}
