/** One call: how it went, which party has sent what, and why. */
import { get, getBare, type ConsoleAnswer } from '../api/api.ts'
import type { CallRecordView, CallReport, CallStatus, CallTrace } from '../api/views.ts'
import { may } from '../api/session.ts'
import {
  durationText,
  momentText,
  moneyText,
  tagsText,
  unitText,
  clockText,
  figureText,
} from '../parts/format.ts'
import { pathOf } from '../parts/address.ts'
import { useResource } from '../parts/resource.ts'
import { Badge, Facts, Moment, Problem, Text } from '../parts/text.tsx'
import { visibleText } from '../parts/visible-text.ts'
import { callText, hangupText, results } from './call-words.ts'
import { DenialCode } from './denial-code.tsx'
import { Ladder } from './ladder-diagram.tsx'
import { nameOfNode, useCustomerNames, useNodeNames, type NodeName } from './names.ts'

interface Call {
  readonly status: CallStatus
  /** Undefined: it lives, or the user may not see it. */
  readonly record: CallRecordView | undefined
}

export function CallScreen({ uuid }: { uuid: string }) {
  const path = `/calls/${encodeURIComponent(uuid)}`
  // Only events of this call count: others do not change it.
  const options = {
    events: ({ type, data }: { type: string; data: Readonly<Record<string, unknown>> }) =>
      type.startsWith('call.') && data['call_uuid'] === uuid,
  }
  const call = useResource(uuid, () => loadCall(uuid), options)
  const trace = useResource(uuid, () => get<CallTrace>(`${path}/trace`), options)
  const { value } = call.data
  const record = value?.record
  const names = { customers: useCustomerNames(), nodes: useNodeNames() }
  return (
    <>
      <Problem message={call.problem.value} />
      {value !== undefined && <Told call={value} {...names} />}
      {value !== undefined && <CallFacts status={value.status} record={record} {...names} />}
      <Downloads path={path} hasTrace={(trace.data.value?.legs.length ?? 0) > 0} record={record} />
      {record !== undefined && <MediaQuality quality={record.media_quality} />}
      {record !== undefined && <Recording path={path} record={record} />}
      {record !== undefined && <Attempts attempts={record.attempts} nodes={names.nodes} />}
      {/* After what is above it: it would move. */}
      {(value !== undefined || call.problem.value !== undefined) && (
        <>
          <h2>What happened</h2>
          <Messages
            trace={trace.data.value}
            problem={trace.problem.value}
            isKnown={!!value}
            nodes={names.nodes}
          />
        </>
      )}
    </>
  )
}

/** A report of all calls would look for it in all of them: the start says where it is. */
export async function loadCall(uuid: string): Promise<ConsoleAnswer<Call>> {
  const answer = await get<CallStatus>(`/pbx/calls/${encodeURIComponent(uuid)}`)
  if (answer.kind !== 'ok') return answer
  const status = answer.data
  if (status.end_stamp === null || !may('cdrs:read'))
    return { ...answer, data: { status, record: undefined } }
  const words = new URLSearchParams({
    start_date: status.start_stamp,
    end_date: new Date(Date.parse(status.start_stamp) + 1).toISOString(),
    call_uuid: uuid,
  })
  const report = await getBare<CallReport>(`/reports/cdrs?${words.toString()}`)
  if (report.kind !== 'ok') return report
  return { ...report, data: { status, record: report.data.records[0] } }
}

interface Names {
  readonly customers: ReadonlyMap<number, string>
  readonly nodes: ReadonlyMap<string, NodeName>
}

function Told({ call: { status, record }, ...names }: { call: Call } & Names) {
  const customer = record?.customer_id == null ? undefined : names.customers.get(record.customer_id)
  const through = record && (record.carrier ?? nodeOf(record, names.nodes)?.name)
  const tone = status.disposition === null ? 'plain' : results[status.disposition].tone
  return (
    <p class="told">
      {status.disposition !== null && (
        <>
          <Badge tone={tone}>{results[status.disposition].text}</Badge>{' '}
        </>
      )}
      <Text value={callText({ status, record, customer, through })} max={800} />
    </p>
  )
}

const nodeOf = ({ node }: CallRecordView, nodes: Names['nodes']): NodeName | undefined =>
  node === null ? undefined : nameOfNode(nodes, node)

/** Undefined: the call was neither verified nor signed. */
function signatureText({ verification, attestation }: CallRecordView): string | false {
  const grade = attestation === null ? '' : `, attestation ${attestation}`
  if (verification === null) return attestation === null ? false : `signed${grade}`
  return `${{ passed: 'caller proved', failed: 'wrong', none: 'none' }[verification]}${grade}`
}

/** Facts for the owner of the carrier. */
const boughtFacts = (record: CallRecordView) => ({
  'Carrier cost': moneyText(record.carrier_cost_exact, record.carrier_currency),
  'Carrier prefix': record.carrier_prefix === '' ? 'all others' : record.carrier_prefix,
  Margin: moneyText(record.margin_exact, record.currency),
})

function CallFacts({ status, record, customers, nodes }: Call & Names) {
  const hasEnded = status.disposition !== null
  const payer = record?.customer_id ?? null
  return (
    <Facts
      of={{
        From: <Text value={status.caller_id_number} max={60} />,
        To: <Text value={status.destination_number} max={60} />,
        Started: <Moment at={status.start_stamp} />,
        Result: hasEnded
          ? `${status.disposition.toLowerCase()} ${status.sip_code}`
          : `${status.status}, in progress`,
        Cause: hasEnded && <Text value={hangupText(status.hangup_cause)} max={80} />,
        'Denial code': status.denial_code !== null && <DenialCode code={status.denial_code} />,
        'Talk time': hasEnded && durationText(status.billsec),
        ...(record !== undefined && {
          Cost: moneyText(record.cost_exact, record.currency),
          ...(record.carrier_cost_exact !== null && boughtFacts(record)),
          'Post-dial delay': unitText(record.post_dial_delay_ms, 'ms'),
          Customer:
            payer === null ? (
              'none'
            ) : may('customers:read') ? (
              <a href={pathOf('customers', `${payer}`)}>
                <Text value={customers.get(payer) ?? `${payer}`} />
              </a>
            ) : (
              `${payer}`
            ),
          Through: <Text value={record.carrier ?? nodeOf(record, nodes)?.full} max={100} />,
          'Taken by': <Text value={record.instance} max={60} />,
          'Call-ID': <Text value={record.call_id} max={200} />,
          Signature: signatureText(record),
          Tags: record.tags !== null && <Text value={tagsText(record.tags)} max={400} />,
        }),
        'Call UUID': <code>{visibleText(status.call_uuid)}</code>,
      }}
    />
  )
}

interface DownloadsProps {
  readonly path: string
  readonly hasTrace: boolean
  readonly record: CallRecordView | undefined
}

function Downloads({ path, hasTrace, record }: DownloadsProps) {
  return (
    <p class="links">
      {hasTrace && (
        <a href={`/api/v1${path}/trace.pcap`} download>
          Messages as pcap
        </a>
      )}
      {record !== undefined && (
        <a href={`/api/v1${path}/vcon`} download>
          Call as vCon (JSON)
        </a>
      )}
    </p>
  )
}

const recordingErrors: Readonly<Record<NonNullable<CallRecordView['recording_error']>, string>> = {
  not_relayed: 'its media went through no relay',
  relay_failed: 'the relay did not start the recording',
  nothing_captured: 'the relay has captured nothing',
  unknown_codec: 'what the relay has captured cannot be decoded',
  not_written: 'the file could not be written',
}

/** Loaded when it is played, not before: the audit log has an entry for each playback. */
function Recording({ path, record }: { path: string; record: CallRecordView }) {
  const { recording, recording_error: error, start_stamp: start } = record
  if (error !== null) return <p class="notice">Not recorded: {recordingErrors[error]}.</p>
  if (recording === null || !may('recordings:listen')) return null
  return (
    <>
      <h2>Recording</h2>
      <p>
        {durationText(recording.duration)}, the caller left, the called party right. Listening is
        noted in the audit log.
      </p>
      <audio
        controls
        preload="none"
        src={`/api/v1${path}/recording`}
        aria-label={`Recording of the call of ${momentText(start)}`}
      />
    </>
  )
}

interface MessagesProps {
  readonly trace: CallTrace | undefined
  readonly problem: string | undefined
  /** The call itself is there. */
  readonly isKnown: boolean
  readonly nodes: Names['nodes']
}

function Messages({ trace, problem, isKnown, nodes }: MessagesProps) {
  // A ladder without messages tells no more than the reason above.
  if (trace === undefined || trace.legs.length === 0)
    return isKnown && problem !== undefined ? (
      <p class="notice">The messages of this call are no longer kept.</p>
    ) : (
      <Problem message={problem} />
    )
  return (
    <>
      {!trace.is_complete && (
        <p class="notice">The first messages of this call are no longer kept.</p>
      )}
      <Ladder trace={trace} nodes={nodes} />
    </>
  )
}

const unknown = 'unknown'

const sources = {
  measured: 'measured by the relay',
  computed: 'computed from jitter and loss',
  reported: 'reported by the phone',
} as const

/** Nothing, where nothing is known. */
function MediaQuality({ quality }: { quality: CallRecordView['media_quality'] }) {
  const streams = [quality?.caller, quality?.callee]
  const isKnown = streams.some((stream) => Object.values(stream ?? {}).some((each) => each != null))
  if (!isKnown) return null
  return (
    <>
      <h2>Media quality</h2>
      <div class="wide" tabIndex={0} role="group" aria-label="Media quality">
        <table>
          <thead>
            <tr>
              <th scope="col">Heard from</th>
              <th scope="col">MOS</th>
              <th scope="col">Jitter</th>
              <th scope="col">Packet loss</th>
              <th scope="col">Round trip</th>
              <th scope="col">Packets</th>
            </tr>
          </thead>
          <tbody>
            <Direction party="the caller" stream={quality?.caller ?? null} />
            <Direction party="the called party" stream={quality?.callee ?? null} />
          </tbody>
        </table>
      </div>
    </>
  )
}

type StreamQuality = NonNullable<CallRecordView['media_quality']>['caller']

function Direction({ party, stream }: { party: string; stream: StreamQuality }) {
  const source = stream?.mos_source
  return (
    <tr>
      <th scope="row">{party}</th>
      <td>
        {knownText(stream?.mos, '', 2)} {source != null && <small>({sources[source]})</small>}
      </td>
      <td>{knownText(stream?.jitter_ms, ' ms')}</td>
      <td>{knownText(stream?.packet_loss_pct, ' %', 2)}</td>
      <td>{knownText(stream?.round_trip_ms, ' ms')}</td>
      <td>{knownText(stream?.packets, '')}</td>
    </tr>
  )
}

const knownText = (value: number | null | undefined, unit: string, digits = 1): string =>
  value === null || value === undefined ? unknown : `${figureText(value, digits)}${unit}`

const answerText = (status: number, reason: string) =>
  status === 0 ? 'no answer in time' : <Text value={`${status} ${reason}`} max={100} />

interface AttemptsProps extends Pick<CallRecordView, 'attempts'> {
  readonly nodes: Names['nodes']
}

function Attempts({ attempts, nodes }: AttemptsProps) {
  if (attempts.length === 0) return null
  return (
    <>
      <h2>Attempts</h2>
      <ol>
        {attempts.map((attempt) => {
          const { destination, status, reason, start_stamp: start, end_stamp: end } = attempt
          const { presented } = attempt
          return (
            <li key={`${start} ${destination}`}>
              <time dateTime={start}>{clockText(start)}</time>{' '}
              <Text value={nameOfNode(nodes, destination).full} max={100} />
              {': '}
              {answerText(status, reason)}{' '}
              <small>after {figureText(Date.parse(end) - Date.parse(start), 0)} ms</small>
              {presented && (
                <small>
                  {', shown '}
                  <Text value={presented.number || 'anonymous'} max={64} />
                  {': '}
                  <Text value={presented.why} max={200} />
                </small>
              )}
            </li>
          )
        })}
      </ol>
    </>
  )
}
