// What an engine tells whoever owns it: what each of its transports tells, and what it finds
// itself.
#pragma once

#include <string>

#include "engine/roce_agreements.h"
#include "engine/roce_questions.h"
#include "engine/roce_request.h"
#include "iwarp/events.h"
#include "roce/hooks.h"
#include "urnic/status.h"

namespace urnic::engine {

struct RoceListener;

// Called from within the engine's functions: nothing of the engine may be called back.
class Hooks : public iwarp::Hooks, public roce::Hooks, public AnswerHooks, public AgreementHooks {
 public:
  void on_completion(verbs::CompletionQueue*) override = 0;
  void on_cq_overrun(verbs::CompletionQueue*) override {}
  void on_qp_event(verbs::QueuePair&, roce::QpEvent) override {}
  // Of RoCE: somebody asks for a connection. What becomes of those that are made on_cm_event()
  // says, for both transports.
  virtual void on_roce_request(RoceListener&, const RoceRequest&) {}
  // Of RoCE: what has come of a question about a service of UD.
  void on_roce_answer(void* /*owner*/, const RoceAnswer&) override {}
  // Of RoCE: what becomes of a connection whose queue pair its program moves.
  void on_roce_agreement(void* /*owner*/, const CmEvent&) override {}
  // Of RoCE: it is in Error, for a reason besides its peer and its work.
  virtual void on_qp_failed(verbs::QueuePair&, Errc, const std::string& /*why*/) {}
};

}  // namespace urnic::engine
