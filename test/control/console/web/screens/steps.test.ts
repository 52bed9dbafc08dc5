import { expect, test } from 'vitest'
import { curlOf, steps } from '../../../../../control/console/web/screens/steps.ts'
import { openControl } from '../../../../support/control.ts'

test('each step makes requests that the API takes, and shows them as a shell does', async () => {
  const api = await openControl()
  const token = await api.key()
  api.engine.placeTestCall = () => Promise.resolve({ kind: 'originating', callUuid: 'any' })
  for (const { fields, requests } of steps) {
    const given = Object.fromEntries(fields.map(({ name, value }) => [name, value]))
    for (const { method, path, body } of requests(given)) {
      const answer = await api.request(`/api/v1${path}`, { method, token, body })
      expect([path, answer.status < 300, answer.text]).toEqual([path, true, answer.text])
    }
  }
})

test('a quote in a body does not end the text of the shell', () => {
  const request = { method: 'POST', path: '/customers', body: { name: "O'Brien" } } as const
  expect(curlOf(request, 'http://h')).toContain(String.raw`-d '{"name":"O'\''Brien"}'`)
})
