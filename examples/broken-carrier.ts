/** A carrier's gateway that answers OPTIONS, and has no line for any call. */
import type Srf from 'drachtio-srf'

export default function brokenCarrier(srf: Srf, onRefused = (): void => undefined): void {
  srf.use('options', (_request, response) => response.send(200))
  srf.invite((_request, response) => {
    onRefused()
    response.send(503)
  })
}
