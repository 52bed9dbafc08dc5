import { expect, test } from 'vitest'
import { openControl } from '../../support/control.ts'

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'PROPFIND', 'QUERY']

test('a method that a path does not have gets 405 in the envelope, with the methods that it has', async () => {
  const control = await openControl()
  const token = await control.key()
  const served = new Map<string, Set<string>>()
  for (const { method, path } of control.app.routes) {
    if (path === '/*' || method === 'ALL') continue
    const known = served.get(path) ?? new Set()
    served.set(path, known.add(method))
  }
  // One handler has all of its methods.
  served.set('/mcp', new Set(['GET', 'POST', 'DELETE']))
  expect(served.size).toBeGreaterThan(80)
  const wrong: unknown[] = []
  for (const [path, known] of served) {
    const others = methods.filter((method) => !known.has(method))
    const allow = [...known, ...(known.has('GET') ? ['HEAD'] : []), 'OPTIONS'].toSorted()
    for (const method of others) {
      control.tick(100)
      const asked = path.replaceAll(/:\w+(?:\{.*?\})?/g, '1').replace('*', 'x')
      const headers = { authorization: `Bearer ${token}`, accept: 'application/json' }
      const answer = await control.app.request(asked, { method, headers })
      const text = await answer.text()
      const allowed = answer.headers.get('allow')?.split(', ').toSorted()
      const told = /"success":false,.*"statusCode":405,"code":"method_not_allowed"/.test(text)
      if (answer.status !== 405 || !told || allowed?.join() !== allow.join())
        wrong.push([method, path, answer.status, allowed, text.slice(0, 80)])
    }
  }
  expect(wrong).toEqual([])
})
