import { expect, test } from 'vitest'
import { curlOf, steps } from '../../../../../control/console/web/screens/steps.ts'
import { openControl } from '../../../../support/control.ts'

test('each step makes requests that the API takes, and shows them as a shell does', async () => {
  const api = await openControl()
  const token = await api.key()
  const filled: Readonly<Record<string, string>> = {
    number: '4930100',
    from: '4930100',
    to: '4940200',
  }
  for (const [index, { fields, requests }] of steps.entries()) {
    const given = Object.fromEntries(
      fields.map(({ name, value }) => [name, value === '' ? (filled[name] ?? '') : value]),
    )
    const host = `192.0.2.${index}`
    for (const { method, path, body } of requests({ ...given, host })) {
      const answer = await api.request(`/api/v1${path}`, { method, token, body })
      expect([path, answer.status < 300, answer.text]).toEqual([path, true, answer.text])
    }
  }
})

test('a quote in a body does not end the text of the shell', () => {
  const request = { method: 'POST', path: '/customers', body: { name: "O'Brien" } } as const
  expect(curlOf(request, 'http://h')).toContain(String.raw`-d '{"name":"O'\''Brien"}'`)
})
