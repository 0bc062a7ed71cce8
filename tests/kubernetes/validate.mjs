// Judges rendered Kubernetes objects, strictly: every field must be known to the types of Kubernetes 1.30 (tsc refuses
// what is in excess), and every value must be what the schemas allow (kubernetes-models).
//
//   validate.mjs NAME... < RENDERED.yaml     prints each problem; exit code 1 if there is one
//   validate.mjs --self-test < RENDERED.yaml  each of a few mistakes, put into it, must be found
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { parseAllDocuments } from 'yaml';

const here = path.dirname(fileURLToPath(import.meta.url));

// Where types and models of an apiVersion are.
const places = {
  'v1': ['kubernetes-types/core/v1', 'kubernetes-models/v1'],
  'apps/v1': ['kubernetes-types/apps/v1', 'kubernetes-models/apps/v1'],
  'autoscaling/v2': ['kubernetes-types/autoscaling/v2', 'kubernetes-models/autoscaling/v2'],
  'networking.k8s.io/v1': ['kubernetes-types/networking/v1', 'kubernetes-models/networking.k8s.io/v1'],
  'policy/v1': ['kubernetes-types/policy/v1', 'kubernetes-models/policy/v1'],
  'monitoring.coreos.com/v1': [null, '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1'],
};

function placeOf(object) {
  const place = places[object.apiVersion];
  if (!place) throw new Error(`nobody here knows apiVersion ${object.apiVersion}`);
  return place;
}

// One file in which each object is a literal of its type.
function asTypescript(objects) {
  return objects.map((object, i) => {
    const [types, models] = placeOf(object);
    const type = types
      ? `import type { ${object.kind} as T${i} } from '${types}';`
      : `import type { I${object.kind} as T${i} } from '${models}/${object.kind}';`;
    return `${type}\nexport const o${i}: T${i} = ${JSON.stringify(object, null, 1)};\n`;
  }).join('\n');
}

function judgeFields(objects) {
  const file = path.join(here, 'rendered.ts');
  const text = asTypescript(objects);
  const options = { noEmit: true, strict: true, skipLibCheck: true, types: [], target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext };
  const host = ts.createCompilerHost(options);
  const { getSourceFile, fileExists, readFile } = host;
  host.getSourceFile = (name, ...rest) => name === file
    ? ts.createSourceFile(name, text, options.target) : getSourceFile.call(host, name, ...rest);
  host.fileExists = (name) => name === file || fileExists.call(host, name);
  host.readFile = (name) => (name === file ? text : readFile.call(host, name));
  const program = ts.createProgram([file], options, host);
  return ts.getPreEmitDiagnostics(program).map((one) => {
    const line = one.file ? one.file.getLineAndCharacterOfPosition(one.start).line : -1;
    return `${text.split('\n')[line]?.trim() ?? ''}: ${ts.flattenDiagnosticMessageText(one.messageText, ' ')}`;
  });
}

async function judgeValues(objects) {
  const problems = [];
  for (const object of objects) {
    const module = await import(`${placeOf(object)[1]}/${object.kind}`);
    const model = module[object.kind] ?? module.default?.[object.kind];
    try {
      new model(structuredClone(object)).validate();
    } catch (error) {
      problems.push(`${object.kind} ${object.metadata.name}: ${error.message}`);
    }
  }
  return problems;
}

async function judge(objects) {
  return [...judgeFields(objects), ...await judgeValues(objects)];
}

const mistakes = {
  'a field with a typo': (o) => { o.Deployment.spec.template.spec.containers[0].securityContext.runAsNonRooot = true; },
  'a field in the wrong place': (o) => { o.Deployment.spec.terminationGracePeriodSeconds = 1; },
  'a text for a number': (o) => { o.Deployment.spec.template.spec.terminationGracePeriodSeconds = '650'; },
  'a selector that is missing': (o) => { delete o.Deployment.spec.selector; },
  'a port beyond all ports': (o) => { o.Service.spec.ports[0].port = 'eighty'; },
  'an unknown key of a rule': (o) => { if (o.PrometheusRule) o.PrometheusRule.spec.groups[0].rules[0].expression = 'up'; },
};

async function selfTest(objects) {
  const missed = [];
  for (const [name, make] of Object.entries(mistakes)) {
    const wrong = structuredClone(objects);
    make(Object.fromEntries(wrong.map((object) => [object.kind, object])));
    if ((await judge(wrong)).length === 0) missed.push(`not noticed: ${name}`);
  }
  return missed;
}

const objects = parseAllDocuments(fs.readFileSync(0, 'utf8')).map((document) => {
  if (document.errors.length > 0) throw document.errors[0];
  return document.toJS();
});
if (objects.length === 0) throw new Error('nothing was rendered');
const problems = process.argv[2] === '--self-test' ? await selfTest(objects) : await judge(objects);
for (const problem of problems) console.log(problem);
console.log(`${objects.length} objects, ${problems.length} problems`);
process.exit(problems.length > 0 ? 1 : 0);
