/** Which entries of the audit log are asked for: only what the API knows. */

const outcomes = ['success', 'refused', 'failed']

/** Times in the address are those of the viewer's zone, as its fields have them. */
export function auditQuery(query: Readonly<Record<string, string>>): string {
  const { actor = '', action = '', target = '', outcome = '', by = '', from = '', to = '' } = query
  const asked: Readonly<Record<string, string>> = {
    actor,
    action,
    target,
    outcome: outcomes.includes(outcome) ? outcome : '',
    agents: by === 'agents' ? 'true' : by === 'others' ? 'false' : '',
    start_date: instantOf(from),
    end_date: instantOf(to),
  }
  const given = Object.entries(asked).filter(([, value]) => value !== '')
  const text = new URLSearchParams(given).toString()
  return text === '' ? '' : `&${text}`
}

function instantOf(local: string): string {
  const time = local === '' ? Number.NaN : new Date(local).getTime()
  return Number.isNaN(time) ? '' : new Date(time).toISOString()
}
