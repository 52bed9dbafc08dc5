/** Of a call that has ended: what was heard from each party, and where the call was tried. */
import type { CallRecord } from '../api/views.ts'
import { clockText, figureText } from '../parts/format.ts'
import { Text } from '../parts/text.tsx'

const unknown = 'unknown'

const sources = {
  measured: 'measured by the relay',
  computed: 'computed out of jitter and loss',
  reported: 'reported by the phone',
} as const

export function MediaQuality({ quality }: { quality: CallRecord['media_quality'] }) {
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

type StreamQuality = NonNullable<CallRecord['media_quality']>['caller']

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

export function Attempts({ attempts }: { attempts: CallRecord['attempts'] }) {
  if (attempts.length === 0) return null
  return (
    <>
      <h2>Attempts</h2>
      <ol>
        {attempts.map(({ destination, status, reason, start_stamp: start, end_stamp: end }) => (
          <li key={`${start} ${destination}`}>
            <time dateTime={start}>{clockText(start)}</time> <Text value={destination} max={100} />:{' '}
            {status === 0 ? 'no answer in time' : <Text value={`${status} ${reason}`} max={100} />}{' '}
            <small>after {figureText(Date.parse(end) - Date.parse(start), 0)} ms</small>
          </li>
        ))}
      </ol>
    </>
  )
}
