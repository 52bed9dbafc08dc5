/** The clock of a report: as the tenant or the customer has it, as the viewer has it, or UTC. */
import { Choice } from './form.tsx'
import { address, setQuery } from './router.ts'

/** An IANA name. */
export const viewerZone = (): string => new Intl.DateTimeFormat().resolvedOptions().timeZone

/** The zone that the address names; undefined: that of the report. */
export function chosenZone(): string | undefined {
  const { zone } = address.value.query
  if (zone === 'viewer') return viewerZone()
  return zone === 'utc' ? 'UTC' : undefined
}

/** As a part of a question to the API. */
export const zoneWords = (): { readonly time_zone?: string } => {
  const zone = chosenZone()
  return zone === undefined ? {} : { time_zone: zone }
}

/** @param own what the report has by itself; absent: the clock of the viewer. */
export const ZoneChoice = ({ own }: { own?: string }) => (
  <Choice
    label="Time zone"
    name="zone"
    value={address.value.query['zone'] ?? (own === undefined ? 'viewer' : '')}
    options={{
      ...(own !== undefined && { '': own }),
      viewer: `Yours (${viewerZone()})`,
      utc: 'UTC',
    }}
    onChange={(zone) => setQuery({ zone })}
  />
)
