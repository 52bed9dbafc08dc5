/**
 * Names what a page asks the API for first, by the screen that it opens with: a browser with a
 * session is told with the page, and asks while the script is on its way.
 */

const session = '/api/v1/auth/session'

/** Written as the screens of `web/` write them: another address would be another request. */
const ofScreens: ReadonlyMap<string, readonly string[]> = new Map([
  ['now', ['/api/v1/metrics/telemetry', '/api/v1/metrics/history', '/api/v1/anomalies?limit=50']],
  ['calls', ['/api/v1/pbx/calls/active']],
  ['customers', ['/api/v1/customers?limit=200']],
])

/**
 * `screen`: of the address; a page without one opens with the first that the user sees. Tenants do
 * not see the platform: they would be refused what its screen asks for.
 */
export function firstRequests(screen: string | undefined, isOfTenant: boolean): readonly string[] {
  const opened = screen ?? (isOfTenant ? 'calls' : 'now')
  const isRefused = isOfTenant && opened === 'now'
  return [session, ...((isRefused ? undefined : ofScreens.get(opened)) ?? [])]
}
